/* text: UTF-8 and JSON as yes-or-no questions (libunistring, jansson). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool text_is_utf8(const char *bytes, size_t len);
/* One JSON value of any type (RFC 8259), nested at most as deep as the library allows. */
bool text_is_json(const char *bytes, size_t len);
/* Whether it is one JSON object or array. */
bool text_is_json_container(const char *bytes, size_t len);
