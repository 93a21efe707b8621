/* tidecast-gateway: holds client connections and sends them what is published. */
#include "common/log.h"
#include "common/program.h"
#include "gateway/supervisor.h"

int main(int argc, char **argv)
{
    int status;
    log_set_name("gateway");
    struct config *config = program_config(argc, argv, &status);
    if (config == NULL)
        return status;
    log_set_level(config->log_level);
    status = supervisor_run(config);
    config_free(config);
    return status;
}
