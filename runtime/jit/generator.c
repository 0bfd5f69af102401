/* The generator's C interface: calls the functions of gen/fusedlogp.lua, one call at a time, and copies what they return out of Lua. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "jit/generator.h"

#include <lauxlib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutex.h"
#include "base/status.h"
#include "jit/lua_state.h"
#include "jit/source_tree.h"

static const char module[] = "gen.fusedlogp";

struct flp_generator {
    pthread_mutex_t mutex; /* one Lua state: one call at a time */
    lua_State *lua;
    flp_source_tree tree;
    char *architectures;
};

/* One call of a generator function: its arguments, and where its results go. A body (select_body and others) makes the call and fills in the results. */
typedef struct {
    const flp_source_tree *tree;
    flp_status status;    /* of the call, unless it raised a Lua error */
    const char *function; /* name in gen/fusedlogp.lua */

    /* The function's arguments, in this order; each may be absent. The last argument, after these, is always the function that reads a template. */
    const flp_wanted_kernels *wanted;
    int with_tuning;     /* 1: wanted->tuning is an argument too */
    const char *word[3]; /* NULL: nil */
    int words;
    int with_integer;
    const flp_model_facts *facts;
    int with_numerics, numerics;
    int with_limit, limit;

    flp_selection *selection; /* the results, from here on */
    struct {
        const char *name; /* of a string in the table that the function returns; NULL after the last */
        char **to;
    } field[5];
    lua_Integer integer; /* at first the argument, where with_integer is 1 */
    char *text;
} request;

static flp_status run(flp_generator *generator, lua_CFunction body, request *request)
{
    flp_status status;

    request->tree = &generator->tree;
    request->status = FLP_OK;
    flp_mutex_lock(&generator->mutex);
    status = flp_lua_state_run(generator->lua, body, request);
    flp_mutex_unlock(&generator->mutex);
    return status != FLP_OK ? status : request->status;
}

/* Returns the string in field `name` of the table at the top of the stack. The string is kept on the stack, below the table, so that Lua does not free it. */
static const char *take_string(lua_State *lua, const char *name, size_t *length)
{
    if (lua_getfield(lua, -1, name) != LUA_TSTRING)
        luaL_error(lua, "%s: got %s, wanted a string", name, luaL_typename(lua, -1));
    lua_insert(lua, -2);
    return lua_tolstring(lua, -2, length);
}

static void copy_string(lua_State *lua, const char *what, const char *from, char *to, size_t bytes)
{
    size_t length = strlen(from);

    if (length >= bytes)
        luaL_error(lua, "%s: got %d characters, wanted fewer than %d", what, (int)length, (int)bytes);
    memcpy(to, from, length + 1);
}

static char *duplicate(const char *bytes, size_t count, request *request)
{
    char *copy = malloc(count + 1);

    if (copy)
        memcpy(copy, bytes, count + 1);
    else
        request->status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the generator's result");
    return copy;
}

/* Copies the kernel at the top of the Lua stack to element i of the selection. */
static void copy_kernel(lua_State *lua, flp_selection *selection, int i)
{
    const char *word;

    if (!lua_istable(lua, -1))
        luaL_error(lua, "kernels: got %s, wanted a table each", luaL_typename(lua, -1));
    copy_string(lua, "variant", take_string(lua, "variant", NULL), selection->variant[i], sizeof(selection->variant[i]));
    word = take_string(lua, "role", NULL);
    selection->role[i] = flp_role_find(word);
    if (selection->role[i] == FLP_ROLES)
        luaL_error(lua, "%s: there is no role \"%s\"", selection->variant[i], word);
    for (int other = 0; other < i; other++)
        if (selection->role[other] == selection->role[i])
            luaL_error(lua, "%s: the role \"%s\" has a kernel already, %s", selection->variant[i], word, selection->variant[other]);
    lua_getfield(lua, -1, "group");
    selection->group[i] = (int32_t)lua_tointeger(lua, -1);
}

static void push_facts(lua_State *lua, const flp_model_facts *facts)
{
    lua_newtable(lua);
    lua_pushinteger(lua, facts->multiprocessors);
    lua_setfield(lua, -2, "multiprocessors");
    lua_pushnumber(lua, facts->clock_hz);
    lua_setfield(lua, -2, "clock_hz");
    lua_pushnumber(lua, facts->memory);
    lua_setfield(lua, -2, "memory");
    lua_pushinteger(lua, facts->l2_bytes);
    lua_setfield(lua, -2, "l2_bytes");
    lua_pushstring(lua, facts->calibration);
    lua_setfield(lua, -2, "calibration");
}

static void push_arguments(lua_State *lua, const request *request)
{
    if (request->wanted) {
        lua_pushstring(lua, request->wanted->problem);
        lua_pushinteger(lua, request->wanted->compute_capability);
        lua_pushstring(lua, request->wanted->backend);
    }
    if (request->with_tuning)
        lua_pushstring(lua, request->wanted->tuning);
    for (int i = 0; i < request->words; i++)
        lua_pushstring(lua, request->word[i]);
    if (request->with_integer)
        lua_pushinteger(lua, request->integer);
    if (request->facts)
        push_facts(lua, request->facts);
    if (request->with_numerics)
        lua_pushboolean(lua, request->numerics);
    if (request->with_limit)
        lua_pushinteger(lua, request->limit);
    flp_lua_state_push_reader(lua, request->tree);
}

/* Calls the request's function. Returns 1 with the result at the top of the stack; or 0 with request->status where the function refused, that is, returned nil,
 * a reason and perhaps a kind. The status is FLP_BAD_ARGUMENT where the kind is "malformed", or where the arguments are words alone, which must then be wrong;
 * else it is FLP_NO_VARIANT, since there may be no kernel for the request. */
static int call(lua_State *lua, request *request)
{
    int function;

    flp_lua_state_push_module(lua, module);
    lua_getfield(lua, -1, request->function);
    function = lua_gettop(lua);
    push_arguments(lua, request);
    lua_call(lua, lua_gettop(lua) - function, 3);
    if (lua_isnil(lua, function)) {
        const int malformed = strcmp(luaL_optstring(lua, function + 2, ""), "malformed") == 0,
                  of_words = !request->wanted && !request->facts && !request->field[0].name;

        request->status = flp_status_fail(malformed || of_words ? FLP_BAD_ARGUMENT : FLP_NO_VARIANT, "%s", luaL_checkstring(lua, function + 1));
        return 0;
    }
    lua_settop(lua, function);
    return 1;
}

static int select_body(lua_State *lua)
{
    request *request = lua_touserdata(lua, 1);
    flp_selection *selection = request->selection;
    int kernels;

    if (!call(lua, request))
        return 0;
    copy_string(lua, "path", take_string(lua, "path", NULL), selection->path, sizeof(selection->path));
    copy_string(lua, "reason", take_string(lua, "reason", NULL), selection->reason, sizeof(selection->reason));
    lua_getfield(lua, -1, "arch");
    copy_string(lua, "arch", luaL_optstring(lua, -1, ""), selection->arch, sizeof(selection->arch));
    lua_pop(lua, 1);
    lua_getfield(lua, -1, "tensor_maps");
    selection->tensor_maps = lua_toboolean(lua, -1);
    lua_pop(lua, 1);
    lua_getfield(lua, -1, "kernels");
    kernels = lua_gettop(lua);
    luaL_checktype(lua, kernels, LUA_TTABLE);
    selection->count = (int)luaL_len(lua, kernels);
    if (selection->count < 1 || selection->count > FLP_ROLES)
        return luaL_error(lua, "kernels: got %d, wanted 1 .. %d", selection->count, FLP_ROLES);
    for (int i = 0; i < selection->count; i++) {
        lua_geti(lua, kernels, i + 1);
        copy_kernel(lua, selection, i);
        lua_settop(lua, kernels);
    }
    return 0;
}

/* The body for functions that return a table of named strings. */
static int fields_body(lua_State *lua)
{
    request *request = lua_touserdata(lua, 1);
    size_t length;

    if (!call(lua, request))
        return 0;
    for (int i = 0; request->field[i].name; i++) {
        const char *text = take_string(lua, request->field[i].name, &length);
        *request->field[i].to = duplicate(text, length, request);
    }
    return 0;
}

/* Joins the strings of the array at the top of the stack to lines, as request->text. */
static void join(lua_State *lua, request *request)
{
    luaL_Buffer buffer;
    const int array = lua_gettop(lua);
    lua_Integer count;
    const char *joined;
    size_t length;

    luaL_checktype(lua, array, LUA_TTABLE);
    count = luaL_len(lua, array);
    luaL_buffinit(lua, &buffer);
    for (lua_Integer i = 1; i <= count; i++) {
        if (i > 1)
            luaL_addchar(&buffer, '\n');
        if (lua_geti(lua, array, i) != LUA_TSTRING)
            luaL_error(lua, "item %d: got %s, wanted a string", (int)i, luaL_typename(lua, -1));
        luaL_addvalue(&buffer);
    }
    luaL_pushresult(&buffer);
    joined = lua_tolstring(lua, -1, &length);
    request->text = duplicate(joined, length, request);
}

/* The body for functions that return an integer, a string, true, or an array of strings, which become lines. */
static int plain_body(lua_State *lua)
{
    request *request = lua_touserdata(lua, 1);
    size_t length;

    if (!call(lua, request))
        return 0;
    if (lua_type(lua, -1) == LUA_TNUMBER)
        request->integer = luaL_checkinteger(lua, -1);
    else if (lua_type(lua, -1) == LUA_TSTRING) {
        const char *text = lua_tolstring(lua, -1, &length);
        request->text = duplicate(text, length, request);
    } else if (lua_type(lua, -1) != LUA_TBOOLEAN)
        join(lua, request);
    return 0;
}

/* Calls a function that returns text; *text is malloc'ed, NULL on failure. */
static flp_status run_for_text(flp_generator *generator, request *request, char **text)
{
    flp_status status = run(generator, plain_body, request);

    if (status != FLP_OK)
        free(request->text);
    *text = status == FLP_OK ? request->text : NULL;
    return status;
}

/* This call also loads every Lua module, so that a broken source tree fails here. */
static flp_status list_architectures(flp_generator *generator)
{
    request request = { .function = "architectures" };

    return run_for_text(generator, &request, &generator->architectures);
}

flp_status flp_generator_create(flp_generator **generator)
{
    static const char variable[] = "FUSEDLOGP_SOURCE_DIR";
    const char *directory = secure_getenv(variable);
    flp_generator *made = calloc(1, sizeof(*made));
    flp_status status;

    *generator = NULL;
    if (!made)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the generator");
    pthread_mutex_init(&made->mutex, NULL);
    status = flp_source_tree_load(directory && *directory ? directory : NULL, &made->tree);
    if (status != FLP_OK)
        status = flp_status_prefix(status, variable);
    if (status == FLP_OK)
        status = flp_lua_state_create(&made->tree, &made->lua);
    if (status == FLP_OK)
        status = list_architectures(made);
    if (status == FLP_OK)
        *generator = made;
    else
        flp_generator_destroy(made);
    return status;
}

void flp_generator_destroy(flp_generator *generator)
{
    if (!generator)
        return;
    flp_lua_state_destroy(generator->lua);
    flp_source_tree_free(&generator->tree);
    pthread_mutex_destroy(&generator->mutex);
    free(generator->architectures);
    free(generator);
}

flp_status flp_generator_select(flp_generator *generator, const flp_wanted_kernels *wanted, flp_selection *selection)
{
    request request = { .function = "select", .wanted = wanted, .with_tuning = 1, .selection = selection };

    *selection = (flp_selection){ 0 };
    return run(generator, select_body, &request);
}

flp_status flp_generator_identify(flp_generator *generator, const flp_wanted_kernels *wanted, flp_generator_identity *identity)
{
    request request = { .function = "identity",
                        .wanted = wanted,
                        .with_tuning = 1,
                        .field = { { "arch", &identity->arch },
                                   { "numerics", &identity->numerics },
                                   { "templates", &identity->templates },
                                   { "selection", &identity->selection } } };
    flp_status status;

    *identity = (flp_generator_identity){ NULL };
    status = run(generator, fields_body, &request);
    if (status != FLP_OK)
        flp_generator_identity_free(identity);
    return status;
}

void flp_generator_identity_free(flp_generator_identity *identity)
{
    free(identity->arch);
    free(identity->numerics);
    free(identity->templates);
    free(identity->selection);
    *identity = (flp_generator_identity){ NULL };
}

flp_status flp_generator_candidates(flp_generator *generator, const flp_wanted_kernels *wanted, const flp_model_facts *facts, int numerics, int limit,
                                    char **lines)
{
    request request = {
        .function = "candidates", .wanted = wanted, .with_tuning = 1, .facts = facts, .with_numerics = 1, .numerics = numerics, .with_limit = 1, .limit = limit
    };

    return run_for_text(generator, &request, lines);
}

flp_status flp_generator_arithmetics(flp_generator *generator, const flp_wanted_kernels *wanted, const flp_model_facts *facts, int limit, char **lines)
{
    request request = { .function = "arithmetics", .wanted = wanted, .facts = facts, .with_limit = 1, .limit = limit };

    return run_for_text(generator, &request, lines);
}

flp_status flp_generator_transfer(flp_generator *generator, flp_transfer *transfer, const flp_model_facts *facts)
{
    request request = { .function = "transfer",
                        .wanted = &transfer->wanted,
                        .with_tuning = 1,
                        .word = { transfer->near_problem },
                        .words = 1,
                        .with_integer = 1,
                        .integer = (lua_Integer)(transfer->near_ratio * 1e6), /* the Lua function takes and returns ratios in millionths */
                        .facts = facts };
    flp_status status = run(generator, plain_body, &request);

    if (status == FLP_OK)
        transfer->ratio = (double)request.integer * 1e-6;
    return status;
}

flp_status flp_generator_advise(flp_generator *generator, const flp_wanted_kernels *wanted, const flp_model_facts *facts, char **tuning)
{
    request request = { .function = "advice", .wanted = wanted, .facts = facts };

    return run_for_text(generator, &request, tuning);
}

flp_status flp_generator_calibration_identity(flp_generator *generator, char **text)
{
    request request = { .function = "calibration_identity" };

    return run_for_text(generator, &request, text);
}

flp_status flp_generator_calibrate(flp_generator *generator, const char *samples, int compute_capability, const flp_model_facts *facts, char **lines)
{
    request request = { .function = "calibrate", .word = { samples }, .words = 1, .with_integer = 1, .integer = compute_capability, .facts = facts };

    return run_for_text(generator, &request, lines);
}

flp_status flp_generator_emit(flp_generator *generator, const char *variant, flp_emitted *emitted)
{
    request request = {
        .function = "emit", .word = { variant }, .words = 1, .field = { { "source", &emitted->source }, { "manifest", &emitted->manifest_text } }
    };
    flp_status status;

    *emitted = (flp_emitted){ 0 };
    status = run(generator, fields_body, &request);
    emitted->source_bytes = emitted->source ? strlen(emitted->source) : 0;
    if (status == FLP_OK)
        status = flp_manifest_parse(emitted->manifest_text, &emitted->manifest);
    if (status != FLP_OK)
        flp_emitted_free(emitted);
    return status;
}

void flp_emitted_free(flp_emitted *emitted)
{
    free(emitted->source);
    free(emitted->manifest_text);
    *emitted = (flp_emitted){ 0 };
}

flp_status flp_generator_list(flp_generator *generator, const char *arch, const char *dtypes, const char *hidden_sizes, char **variants)
{
    request request = { .function = "list", .word = { arch, dtypes, hidden_sizes }, .words = 3 };

    return run_for_text(generator, &request, variants);
}

flp_status flp_generator_ptx_architecture(flp_generator *generator, char **name)
{
    request request = { .function = "ptx_architecture" };

    return run_for_text(generator, &request, name);
}

flp_status flp_generator_left_out(flp_generator *generator, const char *hidden_sizes, char **lines)
{
    request request = { .function = "left_out", .word = { hidden_sizes }, .words = 1 };

    return run_for_text(generator, &request, lines);
}

flp_status flp_generator_define_token_loss(flp_generator *generator, const char *name, const char *definition)
{
    request request = { .function = "define_token_loss", .word = { name, definition }, .words = 2 };

    return run(generator, plain_body, &request);
}

flp_status flp_generator_token_loss(flp_generator *generator, const char *name, char **program)
{
    request request = { .function = "token_loss", .word = { name }, .words = 1 };

    return run_for_text(generator, &request, program);
}

flp_status flp_generator_architectures(flp_generator *generator, const char **names)
{
    *names = generator->architectures;
    return FLP_OK;
}

flp_status flp_generator_capability(flp_generator *generator, const char *arch, int *compute_capability)
{
    request request = { .function = "capability", .word = { arch }, .words = 1 };
    flp_status status = run(generator, plain_body, &request);

    *compute_capability = (int)request.integer;
    return status;
}

const char *flp_generator_digest(const flp_generator *generator)
{
    return generator->tree.digest;
}
