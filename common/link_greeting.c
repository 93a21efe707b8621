#include "common/link_greeting.h"

#include "common/log.h"

#include <stdio.h>

static enum link_greeting say_name(const struct link_settings *settings, struct buf *out)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "tidecast-%s", settings->name);
    const struct resp_arg args[] = {resp_text("CLIENT"), resp_text("SETNAME"), resp_text(name)};
    resp_append_command(out, args, 3);
    return GREETING_NAME;
}

enum link_greeting link_greeting_start(const struct link_settings *settings, struct buf *out)
{
    if (settings->password[0] == '\0')
        return say_name(settings, out);
    const struct resp_arg password = resp_text(settings->password);
    const struct resp_arg args[] = {resp_text("AUTH"), resp_text(settings->user), password};
    const struct resp_arg without_user[] = {args[0], password};
    if (settings->user[0] == '\0')
        resp_append_command(out, without_user, 2);
    else
        resp_append_command(out, args, 3);
    return GREETING_AUTH;
}

/* Nothing but OK opens the door: after any other answer the commands would run as the default
 * user. */
static enum link_fault fault_of_auth(const struct resp *answer)
{
    if (answer->type == RESP_STATUS && resp_is(answer, "OK"))
        return LINK_FAULT_NONE;
    if (answer->type != RESP_ERROR)
        return LINK_FAULT_PROTOCOL;
    enum link_fault fault = link_fault_of_error(answer);
    return fault == LINK_FAULT_NONE ? LINK_FAULT_AUTH : fault;
}

/* A name is a courtesy: to be refused it, or to ask a server that knows no names, is no fault. */
static enum link_fault fault_of_name(const struct link_settings *settings,
                                     const struct resp *answer)
{
    char quoted[LOG_QUOTE_MAX];
    enum link_fault fault = link_fault_of_error(answer);
    if (fault != LINK_FAULT_NONE && fault != LINK_FAULT_ACL)
        return fault;
    if (answer->type == RESP_ERROR)
        log_debug("redis_link_unnamed link=%s text=\"%s\"", settings->name,
                  log_quote(quoted, answer->text, answer->len));
    return LINK_FAULT_NONE;
}

enum link_fault link_greeting_take(enum link_greeting *step, const struct link_settings *settings,
                                   const struct resp *answer, struct buf *out)
{
    if (*step == GREETING_AUTH) {
        enum link_fault fault = fault_of_auth(answer);
        if (fault == LINK_FAULT_NONE)
            *step = say_name(settings, out);
        return fault;
    }
    *step = GREETING_DONE;
    return fault_of_name(settings, answer);
}
