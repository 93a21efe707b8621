#include "gateway/console/assets.h"

#include <string.h>

#include "console_files.h"

static const struct asset assets[] = {
    {"/", "text/html; charset=utf-8", index_html, sizeof(index_html), index_html_etag},
    {"/tidecast.js", "text/javascript; charset=utf-8", tidecast_js, sizeof(tidecast_js),
     tidecast_js_etag},
};

const struct asset *asset_find(const char *path, size_t len)
{
    for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++) {
        const struct asset *a = &assets[i];
        if (strlen(a->path) == len && memcmp(a->path, path, len) == 0)
            return a;
    }
    return NULL;
}
