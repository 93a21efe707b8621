/* frame: bytes ready for a socket, shared by all who get them. Belongs to one message. */
#pragma once

#include <stdint.h>

struct frame {
    uint32_t len;
    char bytes[];
};
