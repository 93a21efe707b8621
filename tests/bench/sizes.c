/* Prints what the gateway allocates for a channel, as JSON, for the arithmetic of tests/bench/idle.
 */
#include "common/frame.h"
#include "common/message.h"
#include "gateway/hub/channel.h"

#include <stdio.h>

int main(void)
{
    (void)printf("{\"channel\":%zu,\"subscription\":%zu,\"message\":%zu,\"frame\":%zu,"
                 "\"ring_slot\":%zu,\"sweep_slot\":%zu,\"hash_bucket\":%zu}\n",
                 sizeof(struct channel), sizeof(struct subscription), sizeof(struct message),
                 sizeof(struct frame), sizeof(struct message *), sizeof(void *),
                 sizeof(UT_hash_bucket));
    return 0;
}
