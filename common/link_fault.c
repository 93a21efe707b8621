#include "common/redis_link.h"

#include <string.h>

static const char *const names[] = {
    [LINK_FAULT_NONE] = "none",
    [LINK_FAULT_RESOLVE] = "resolve",
    [LINK_FAULT_CONNECT] = "connect",
    [LINK_FAULT_CLOSED] = "closed",
    [LINK_FAULT_PROTOCOL] = "protocol",
    [LINK_FAULT_AUTH] = "auth",
    [LINK_FAULT_ACL] = "acl",
    [LINK_FAULT_LOADING] = "loading",
    [LINK_FAULT_MAXCLIENTS] = "maxclients",
    [LINK_FAULT_SILENT] = "silent",
    [LINK_FAULT_OVERFLOW] = "overflow",
};

/* By how the error begins. DENIED is Redis' protected mode, said unasked before it closes. */
static const struct {
    const char *start;
    enum link_fault fault;
} meanings[] = {
    {"WRONGPASS ", LINK_FAULT_AUTH},
    {"NOAUTH ", LINK_FAULT_AUTH},
    {"DENIED ", LINK_FAULT_AUTH},
    {"NOPERM ", LINK_FAULT_ACL},
    {"LOADING ", LINK_FAULT_LOADING},
    {"BUSY ", LINK_FAULT_LOADING},
    {"MASTERDOWN ", LINK_FAULT_LOADING},
    {"READONLY ", LINK_FAULT_LOADING},
    {"ERR max number of clients", LINK_FAULT_MAXCLIENTS},
};

const char *link_fault_name(enum link_fault fault)
{
    return names[fault];
}

enum link_fault link_fault_of_error(const struct resp *error)
{
    if (error->type != RESP_ERROR)
        return LINK_FAULT_NONE;
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (strncmp(error->text, meanings[i].start, strlen(meanings[i].start)) == 0)
            return meanings[i].fault;
    return LINK_FAULT_NONE;
}
