#!lua name=tidecast
-- tidecast: publishes with an id and a place in history, keeps the clock, holds the lease.
--
-- Every function derives its keys from KEYS[1] alone: <prefix> is [A-Za-z0-9_-]{1,32}: and what
-- follows it is a channel's name, or `$` and the name of a control key.
-- A refusal is `TIDECAST <code> <text>`. Each function first reads and checks everything, its
-- rights included, and only then writes: no error leaves half of its work behind.

local VERSION = 1
local SCHEMA = 1
local IDEMPOTENCY_MS = 300000
local NUMBER_MAX = 2 ^ 53
local CACHED_NAMESPACES_MAX = 256
-- Redis takes ids up to 2^64 - 1; half of it leaves everybody signed arithmetic.
local ID_NUMBER_MAX = '9223372036854775807'
-- Where a new history begins within its ms: above every id that a lost clock gave in the same ms.
local BORN_SEQ = '1000000'

-- While a library loads there is no global but `redis`, and that without redis.call: all others are
-- looked up when a function runs.
local function call(...)
    return redis.call(...)
end

local function refuse(code, text)
    error({err = 'TIDECAST ' .. code .. ' ' .. text})
end

-- Commands of a function run with its caller's rights. Asked before the first write.
local function require_right(command, key, ...)
    if not redis.acl_check_cmd(command, key, ...) then
        error({err = 'NOPERM tidecast: this user may not run ' .. command .. ' on ' .. key})
    end
end

-- Ids are {ms, seq} as decimal text, since a double ends at 2^53.

local function is_less(a, b)
    if #a ~= #b then
        return #a < #b
    end
    return a < b
end

local function is_before(a, b)
    return is_less(a.ms, b.ms) or (a.ms == b.ms and is_less(a.seq, b.seq))
end

local function latest(a, b)
    return is_before(a, b) and b or a
end

local function increment(number)
    if #number < 15 then
        return ('%d'):format(number + 1)
    end
    local head, digit, nines = number:match('^(%d-)([0-8])(9*)$')
    if not head then
        return '1' .. ('0'):rep(#number)
    end
    return head .. ('%d'):format(digit + 1) .. ('0'):rep(#nines)
end

local function is_number(text)
    return #text <= 20 and (text == '0' or text:sub(1, 1) ~= '0')
end

local function parse_id(text)
    local ms, seq = text:match('^(%d+)%-(%d+)$')
    if ms and is_number(ms) and is_number(seq) then
        return {ms = ms, seq = seq}
    end
    return nil
end

local function id_text(id)
    return id.ms .. '-' .. id.seq
end

local function next_id(last, now_ms)
    local id
    if is_less(last.ms, now_ms) then
        id = {ms = now_ms, seq = '0'}
    else
        id = {ms = last.ms, seq = increment(last.seq)}
        if is_less(ID_NUMBER_MAX, id.seq) then
            id = {ms = increment(last.ms), seq = '0'}
        end
    end
    if is_less(ID_NUMBER_MAX, id.ms) then
        refuse('clock_exhausted', 'no id is left after ' .. id_text(last))
    end
    return id
end

local function read_time_ms()
    local time = call('TIME')
    return time[1] .. ('%03d'):format(math.floor(time[2] / 1000))
end

local function read_clock(prefix)
    local text = call('GET', prefix .. '$clock')
    if not text then
        return nil
    end
    local clock = parse_id(text)
    if not clock then
        refuse('clock_exhausted', 'the stored clock is not an id')
    end
    return clock
end

local function read_born(prefix)
    local text = call('GET', prefix .. '$born')
    return text and parse_id(text) or nil
end

-- The clock and born as they stand, without writing. A lost clock begins a new history now; a lost
-- born means that nothing before the clock is known to be whole.
local function read_history(prefix, now_ms, needs_born)
    local clock = read_clock(prefix)
    if clock and not needs_born then
        return {clock = clock}
    end
    local born = read_born(prefix)
    if not clock then
        local now = {ms = now_ms, seq = BORN_SEQ}
        born = latest(born or now, now)
        return {clock = born, born = born, is_born_new = true}
    end
    return {clock = clock, born = born or clock, is_born_new = born == nil}
end

local function split_key(key)
    local prefix, name = key:match('^([%w_-]+:)(.+)$')
    if not prefix or #prefix > 33 then
        return nil
    end
    return prefix, name
end

local function is_name(text, max)
    return #text <= max and text:find('^[%w._:/@-]+$') ~= nil
end

local function channel_of(keys)
    local prefix, channel = split_key(keys[1] or '')
    if #keys ~= 1 or not prefix or not is_name(channel, 200) then
        refuse('bad_channel', 'give one key, <prefix><channel>; a channel is 1 to 200 of '
            .. '[A-Za-z0-9._:/@-]')
    end
    return prefix, channel
end

-- The prefix of a control key; `pattern` is what the rest of its name must be.
local function prefix_of(keys, pattern)
    local prefix, name = split_key(keys[1] or '')
    if #keys ~= 1 or not prefix or not name:find(pattern) then
        refuse('bad_arguments', 'the key must be <prefix>' .. pattern:gsub('[%^%%]', ''))
    end
    return prefix
end

local contents = {auto = true, text = true, json = true}
local cached_namespaces, cached_count = {}, 0

local function parse_number(text)
    local number = text and text:find('^%d+$') and tonumber(text)
    return number and number <= NUMBER_MAX and number
end

-- `messages=100 ttl_ms=60000 max_payload=65536 content=auto`, or nil. Unknown fields are a newer
-- broker's and harmless.
local function parse_namespace(text)
    local fields = {}
    for name, value in text:gmatch('([%w_]+)=(%S+)') do
        fields[name] = value
    end
    local namespace = {
        messages = parse_number(fields.messages),
        ttl_ms = parse_number(fields.ttl_ms),
        max_payload = parse_number(fields.max_payload),
        content = contents[fields.content or ''] and fields.content,
    }
    if not (namespace.messages and namespace.ttl_ms and namespace.max_payload
            and namespace.content) or (namespace.messages > 0 and namespace.ttl_ms < 1) then
        return nil
    end
    return namespace
end

local function cached_namespace(text)
    local namespace = cached_namespaces[text]
    if namespace then
        return namespace
    end
    namespace = parse_namespace(text)
    if not namespace then
        refuse('config_unsupported', 'a namespace in the table is malformed')
    end
    if cached_count >= CACHED_NAMESPACES_MAX then
        cached_namespaces, cached_count = {}, 0
    end
    cached_namespaces[text] = namespace
    cached_count = cached_count + 1
    return namespace
end

local function namespace_of(prefix, channel)
    local name = channel:match('^([^:]+):') or 'default'
    local row = call('HMGET', prefix .. '$config', 'schema', 'ns:' .. name, 'ns:default')
    if not row[1] then
        refuse('config_missing', 'the broker has not written the namespace table')
    end
    local schema = parse_number(row[1])
    if not schema or schema > SCHEMA then
        refuse('config_unsupported', 'the namespace table is of a newer schema')
    end
    local text = row[2] or row[3]
    if not text then
        refuse('config_missing', 'the namespace table has no section default')
    end
    return cached_namespace(text)
end

-- Well-formed sequences by lead byte (Unicode, table 3-7). Each is replaced by a blank, never by
-- nothing: what stood around it must not become a sequence.
local utf8_sequences = {
    '[\194-\223][\128-\191]',
    '[\225-\236\238\239][\128-\191][\128-\191]',
    '\224[\160-\191][\128-\191]',
    '\237[\128-\159][\128-\191]',
    '\240[\144-\191][\128-\191][\128-\191]',
    '[\241-\243][\128-\191][\128-\191][\128-\191]',
    '\244[\128-\143][\128-\191][\128-\191]',
}

local function is_utf8(text)
    local i = 1
    while text:find('[\128-\255]') do
        if i > #utf8_sequences then
            return false
        end
        text = text:gsub(utf8_sequences[i], ' ')
        i = i + 1
    end
    return true
end

-- An instance of our own: its strictness is nobody else's.
local strict_json
local function decode_json(text)
    if not strict_json then
        strict_json = cjson.new()
        strict_json.decode_invalid_numbers(false)
    end
    return strict_json.decode(text)
end

-- cjson lets through raw control characters in strings, and `1.`, `-.5`.
local function is_json(text)
    if not pcall(decode_json, text) then
        return false
    end
    if text:find('\\', 1, true) then
        text = text:gsub('\\.', '')
    end
    if text:find('%c') then
        for inside in text:gmatch('"([^"]*)"') do
            if inside:find('[%z\1-\31]') then
                return false
            end
        end
    end
    local bare = text:gsub('"[^"]*"', '""') .. ' '
    return not (bare:find('%.%D') or bare:find('%D%.'))
end

local function check_payload(payload, namespace)
    if payload:sub(1, 1) == '\0' then
        refuse('payload_enveloped', 'a payload must not begin with NUL')
    end
    if #payload > namespace.max_payload then
        refuse('payload_too_big', 'at most ' .. ('%d'):format(namespace.max_payload) .. ' bytes')
    end
    if not is_utf8(payload) then
        refuse('payload_not_utf8', 'a payload must be UTF-8')
    end
    if namespace.content == 'json' and not is_json(payload) then
        refuse('payload_not_json', 'this namespace takes JSON only')
    end
end

local options = {
    event = function(value)
        if not is_name(value, 100) or value:sub(1, 9) == 'tidecast.' then
            refuse('bad_event', '1 to 100 of [A-Za-z0-9._:/@-], not beginning with tidecast.')
        end
    end,
    key = function(value)
        if not is_name(value, 200) then
            refuse('bad_key', '1 to 200 of [A-Za-z0-9._:/@-]')
        end
    end,
    idempotency = function(value)
        if not is_name(value, 128) then
            refuse('bad_idempotency_key', '1 to 128 of [A-Za-z0-9._:/@-]')
        end
    end,
}

local function parse_entry(args)
    if #args % 2 ~= 1 then
        refuse('bad_arguments', 'give a payload, then pairs of a name and a value')
    end
    local entry = {payload = args[1]}
    for i = 2, #args, 2 do
        local name, value = args[i], args[i + 1]
        if not options[name] or entry[name] then
            refuse('bad_arguments', 'names are event, key and idempotency, each once')
        end
        options[name](value)
        entry[name] = value
    end
    return entry
end

-- The last id that the stream ever gave, or nil. Trimming and deleting do not change it.
local function read_last_id(log)
    local info = redis.pcall('XINFO', 'STREAM', log)
    if info.err then
        if info.err:find('no such key', 1, true) then
            return nil
        end
        error(info)
    end
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then
            return parse_id(info[i + 1])
        end
    end
    error({err = 'ERR tidecast: XINFO STREAM tells no last-generated-id'})
end

local function envelope(id, prev, entry)
    return '\0001 id=' .. id_text(id)
        .. (prev and ' prev=' .. id_text(prev) or '')
        .. (entry.event and ' event=' .. entry.event or '')
        .. (entry.key and ' key=' .. entry.key or '')
        .. '\n' .. entry.payload
end

local function digest(entry)
    return redis.sha1hex((entry.event or '') .. '\0' .. (entry.key or '') .. '\0' .. entry.payload)
end

-- The id that this idempotency key gave before, or nil.
local function read_earlier(idem, content)
    local stored = call('GET', idem)
    if not stored then
        return nil
    end
    local id, stored_content = stored:match('^(%S+) (%x+)$')
    if stored_content ~= content then
        refuse('idempotency_conflict', 'the key was used for another message')
    end
    return id
end

-- All but SET of the clock: that is the first write, and may fail alone.
local function require_publish_rights(keys, idem, place)
    require_right('PUBLISH', keys.channel, '')
    if place.prev then
        require_right('XADD', keys.log, '*', '', '')
        require_right('PEXPIRE', keys.log, '1')
    end
    if place.born then
        require_right('SET', keys.born, '')
    end
    if idem then
        require_right('SET', idem, '')
    end
end

-- What an absent stream's next entry comes after: since then nothing was published, or its key
-- would still live.
local function quiet_since(born, now_ms, ttl_ms)
    local ms = math.max(0, tonumber(now_ms) - ttl_ms)
    return latest(born, {ms = ('%d'):format(ms), seq = '0'})
end

local function place_entry(keys, prefix, namespace)
    local now_ms = read_time_ms()
    local last = namespace.messages > 0 and read_last_id(keys.log) or nil
    local history = read_history(prefix, now_ms, namespace.messages > 0 and not last)
    local place = {id = next_id(last and latest(history.clock, last) or history.clock, now_ms)}
    place.born = history.is_born_new and history.born
    if namespace.messages > 0 then
        place.prev = last or quiet_since(history.born, now_ms, namespace.ttl_ms)
        -- Ids run ahead of the host's clock since it stepped back: `now - ttl` no longer tells
        -- which of them have expired, so born follows them.
        if is_less(now_ms, place.id.ms) then
            place.born = place.id
        end
    end
    return place
end

local function write_history(keys, namespace, entry, place)
    call('XADD', keys.log, 'MAXLEN', '=', ('%d'):format(namespace.messages), id_text(place.id),
        'payload', entry.payload, 'event', entry.event or '', 'key', entry.key or '',
        'prev', id_text(place.prev))
    call('PEXPIRE', keys.log, ('%d'):format(namespace.ttl_ms))
end

local function publish_entry(channel_key, prefix, channel, entry)
    local namespace = namespace_of(prefix, channel)
    check_payload(entry.payload, namespace)
    local keys = {
        channel = channel_key,
        clock = prefix .. '$clock',
        born = prefix .. '$born',
        log = prefix .. '$log:{' .. channel .. '}',
    }
    local idem = entry.idempotency and prefix .. '$idem:{' .. channel .. '}:' .. entry.idempotency
    local content = idem and digest(entry)
    local earlier = idem and read_earlier(idem, content)
    if earlier then
        return earlier
    end
    local place = place_entry(keys, prefix, namespace)
    require_publish_rights(keys, idem, place)

    local id = id_text(place.id)
    call('SET', keys.clock, id)
    if place.born then
        call('SET', keys.born, id_text(place.born))
    end
    if place.prev then
        write_history(keys, namespace, entry, place)
    end
    if idem then
        call('SET', idem, id .. ' ' .. content, 'PX', ('%d'):format(IDEMPOTENCY_MS))
    end
    call('PUBLISH', keys.channel, envelope(place.id, place.prev, entry))
    return id
end

local function publish(keys, args)
    local prefix, channel = channel_of(keys)
    return publish_entry(keys[1], prefix, channel, parse_entry(args))
end

-- Tells the position that everything published so far is at or below, and all later above.
local function probe(keys, args)
    local prefix = prefix_of(keys, '^%$probe:[%w._:/@-]+$')
    if #args ~= 1 or not is_name(args[1], 200) then
        refuse('bad_arguments', 'give a token, 1 to 200 of [A-Za-z0-9._:/@-]')
    end
    local now_ms = read_time_ms()
    local history = read_history(prefix, now_ms, false)
    local position = history.clock
    local is_behind = is_less(position.ms, now_ms)
    if is_behind then
        position = {ms = now_ms, seq = '0'}
    end
    if is_less(ID_NUMBER_MAX, position.ms) or is_less(ID_NUMBER_MAX, position.seq) then
        refuse('clock_exhausted', 'the stored clock is beyond all ids')
    end
    require_right('SET', prefix .. '$clock', '')
    require_right('SET', prefix .. '$born', '')
    require_right('PUBLISH', keys[1], '')

    if is_behind or history.is_born_new then
        call('SET', prefix .. '$clock', id_text(position))
    end
    if history.is_born_new then
        call('SET', prefix .. '$born', id_text(history.born))
    end
    call('PUBLISH', keys[1], id_text(position) .. ' ' .. args[1])
    return id_text(position)
end

local function read_lease(key)
    local epoch, owner = (call('GET', key) or ''):match('^(%d+) (%S+)$')
    return epoch and tonumber(epoch), owner
end

-- Never less than the time: so epochs stay unique when a flush takes the counter away.
local function next_epoch(key)
    local stored = parse_number(call('GET', key) or '') or 0
    return math.max(stored + 1, tonumber(read_time_ms()))
end

-- {epoch or 0, remaining ms, hash of the namespace table or '', version of this library}
local function lease(keys, args)
    local prefix = prefix_of(keys, '^%$lease$')
    local owner, ttl_ms = args[1] or '', parse_number(args[2])
    if #args ~= 2 or not is_name(owner, 200) or not ttl_ms or ttl_ms < 1 then
        refuse('bad_arguments', 'give an owner and a time in ms')
    end
    local hash = call('HGET', prefix .. '$config', 'hash') or ''
    local epoch, holder = read_lease(keys[1])
    local remaining = holder and call('PTTL', keys[1]) or 0
    if holder and holder ~= owner and remaining > 0 then
        return {0, remaining, hash, VERSION}
    end
    local epoch_key = prefix .. '$epoch'
    local is_new = holder ~= owner
    epoch = is_new and next_epoch(epoch_key) or epoch
    require_right('SET', keys[1], '')
    require_right('SET', epoch_key, '')
    if is_new then
        call('SET', epoch_key, ('%d'):format(epoch))
    end
    call('SET', keys[1], ('%d %s'):format(epoch, owner), 'PX', ('%d'):format(ttl_ms))
    return {epoch, ttl_ms, hash, VERSION}
end

local function release(keys, args)
    prefix_of(keys, '^%$lease$')
    local epoch, holder = read_lease(keys[1])
    if #args ~= 2 then
        refuse('bad_arguments', 'give an owner and an epoch')
    end
    if not holder or holder ~= args[1] or epoch ~= tonumber(args[2]) then
        return 0
    end
    return call('DEL', keys[1])
end

local function tick(keys, args)
    local prefix, channel = channel_of(keys)
    if #args ~= 2 then
        refuse('bad_arguments', 'give an epoch and a payload')
    end
    local epoch = read_lease(prefix .. '$lease')
    if not epoch or epoch ~= parse_number(args[1]) then
        refuse('stale_epoch', 'the lease is not held with this epoch')
    end
    return publish_entry(keys[1], prefix, channel, {payload = args[2]})
end

local function parse_table(args)
    local wanted = {schema = args[1]}
    for i = 2, #args, 2 do
        local name, value = args[i], args[i + 1]
        local is_namespace = name:find('^ns:[%w_-]+$')
        if (not is_namespace and name ~= 'hash') or wanted[name]
                or (is_namespace and not parse_namespace(value)) then
            refuse('bad_arguments', 'the pairs are hash and ns:<name>, each once, well formed')
        end
        wanted[name] = value
    end
    if not wanted['ns:default'] or not wanted.hash then
        refuse('bad_arguments', 'the table needs hash and ns:default')
    end
    return wanted
end

local function is_in_force(stored, wanted)
    local count = 0
    for i = 1, #stored, 2 do
        if wanted[stored[i]] ~= stored[i + 1] then
            return false
        end
        count = count + 1
    end
    for _ in pairs(wanted) do
        count = count - 1
    end
    return count == 0
end

-- 1: written, 0: it stood there already.
local function configure(keys, args)
    local prefix = prefix_of(keys, '^%$config$')
    local schema = parse_number(args[1])
    if not schema or #args % 2 ~= 1 then
        refuse('bad_arguments', 'give a schema, then pairs of a name and a value')
    end
    local wanted = parse_table(args)
    local stored_schema = call('HGET', keys[1], 'schema')
    if schema > SCHEMA or (stored_schema and (parse_number(stored_schema) or 1e99) > schema) then
        refuse('config_unsupported', 'the table or the library is of another schema')
    end
    if is_in_force(call('HGETALL', keys[1]), wanted) then
        return 0
    end
    local clock = read_clock(prefix)
    require_right('DEL', keys[1])
    require_right('HSET', keys[1], '', '')
    require_right('SET', prefix .. '$born', '')

    call('DEL', keys[1])
    for name, value in pairs(wanted) do
        call('HSET', keys[1], name, value)
    end
    -- What was published under another table may not be stored as long as this one says.
    if clock then
        call('SET', prefix .. '$born', id_text(clock))
    end
    return 1
end

local publisher_commands = {
    {'time'}, {'get', '$clock'}, {'set', '$clock', ''}, {'hmget', '$config', ''},
    {'xinfo', 'stream', '$log:{check}'}, {'xadd', '$log:{check}', '*', '', ''},
    {'pexpire', '$log:{check}', '1'}, {'publish', 'check', ''},
}
local broker_commands = {
    {'hget', '$config', ''}, {'hgetall', '$config'}, {'hset', '$config', '', ''},
    {'del', '$lease'}, {'pttl', '$lease'},
}

local function append_missing(missing, prefix, commands)
    for _, words in ipairs(commands) do
        local args = {unpack(words)}
        local place = args[1] == 'xinfo' and 3 or 2
        args[place] = args[place] and prefix .. args[place]
        if not redis.acl_check_cmd(unpack(args)) then
            missing[#missing + 1] = place == 3 and words[1] .. '|' .. words[2] or words[1]
        end
    end
end

-- The commands that this user lacks, as `publisher` or (by default) as `broker`.
local function check(keys, args)
    local prefix = prefix_of(keys, '^%$check$')
    local role = args[1] or 'broker'
    if #args > 1 or (role ~= 'broker' and role ~= 'publisher') then
        refuse('bad_arguments', 'roles are publisher and broker')
    end
    local missing = {}
    append_missing(missing, prefix, publisher_commands)
    if role == 'broker' then
        append_missing(missing, prefix, broker_commands)
    end
    return missing
end

local function version()
    return VERSION
end

-- Redis' pcall gives the error's text alone. Returned instead of raised, it reaches the client as it
-- was written. Redis 7.0 has no code of its own for a command that the ACL refuses in a function;
-- what else has no code is a fault of this library.
local function error_text(raised)
    if raised:find('user executing the script', 1, true) then
        return 'NOPERM tidecast: ' .. raised:gsub('^%u+ ', '')
    end
    return raised:find('^%u+ ') and raised or 'ERR tidecast: ' .. raised
end

local function guarded(body)
    return function(keys, args)
        local ok, result = pcall(body, keys, args)
        if ok then
            return result
        end
        return {err = error_text(result)}
    end
end

local function register(name, body, flags)
    redis.register_function({function_name = name, callback = guarded(body), flags = flags})
end

register('tidecast_version', version, {'no-writes'})
register('tidecast_publish', publish, {})
register('tidecast_probe', probe, {'allow-oom'})
register('tidecast_lease', lease, {'allow-oom'})
register('tidecast_release', release, {'allow-oom'})
register('tidecast_tick', tick, {})
register('tidecast_configure', configure, {'allow-oom'})
register('tidecast_check', check, {'no-writes'})
