/* redis_socket: a non-blocking stream socket with the options that a Redis link wants. */
#pragma once

#include <netdb.h>
#include <stddef.h>

/* Begins to connect: the descriptor, or -1 with errno. */
int redis_socket_open(const struct addrinfo *to) __attribute__((warn_unused_result));
enum redis_socket_result { REDIS_SOCKET_CONNECTED, REDIS_SOCKET_WAIT, REDIS_SOCKET_FAILED };
/* How the attempt stands; FAILED leaves the reason in errno. */
enum redis_socket_result redis_socket_check(int fd);

enum { REDIS_ADDRESS_TEXT_MAX = 128 };
/* "127.0.0.1:6379", "[::1]:6379" or the path, for people to read. Returns out. */
const char *redis_socket_text(char out[REDIS_ADDRESS_TEXT_MAX], const struct addrinfo *address);
