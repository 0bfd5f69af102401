/* Creates and runs a Lua state that can only compute. */
#include "jit/lua_state.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/locale.h"
#include "base/status.h"

static const char modules_key[] = "fusedlogp.modules";
static const char require_key[] = "fusedlogp.require";

/* The state's memory and limits. */
typedef struct {
    size_t used, limit; /* bytes allocated, and the most that may be */
    int is_bounded;     /* 1: a function is run by bounded(), and the limits below hold */
    size_t left;        /* bytes that the function may still allocate, whatever is freed meanwhile */
    /* 1: the function exceeded the limit of memory, of what is allocated in all, of a string's length, of instructions */
    int exceeded, spent, is_long, stopped;
} account;

/* 1: the limits allow a block to be allocated, or to grow from `before` bytes. The whole of it counts, because what it has is copied. of_string 1: for a
 * string. */
static int allows(account *account, size_t before, size_t bytes, int of_string)
{
    const int is_long = account->is_bounded && of_string && bytes > (size_t)FLP_LUA_STRING_KIBIBYTES << 10;
    const int is_spent = account->is_bounded && bytes > account->left, exceeds = account->used - before + bytes > account->limit;

    account->is_long |= is_long;
    account->spent |= is_spent;
    account->exceeded |= exceeds;
    if (is_long || is_spent || exceeds)
        return 0;
    if (account->is_bounded)
        account->left -= bytes;
    return 1;
}

static void *allocate(void *data, void *block, size_t old_bytes, size_t bytes)
{
    account *account = data;
    const size_t before = block ? old_bytes : 0; /* for a new block Lua passes a type in old_bytes */
    void *moved;

    if (bytes == 0) {
        account->used -= before;
        free(block);
        return NULL;
    }
    if (bytes > before && !allows(account, before, bytes, !block && old_bytes == LUA_TSTRING))
        return NULL;
    moved = realloc(block, bytes);
    if (moved)
        account->used += bytes - before;
    return moved;
}

static account *account_of(lua_State *lua)
{
    void *data;

    lua_getallocf(lua, &data);
    return data;
}

static void stop(lua_State *lua, lua_Debug *activation)
{
    (void)activation;
    account_of(lua)->stopped = 1;
    luaL_error(lua, "stopped");
}

/* bounded(f): see lua_state.h. */
static int bounded(lua_State *lua)
{
    account *account = account_of(lua);
    int result;

    account->exceeded = account->spent = account->is_long = account->stopped = 0;
    account->limit = account->used + ((size_t)FLP_LUA_MEBIBYTES << 20);
    account->left = (size_t)FLP_LUA_MEBIBYTES_IN_ALL << 20;
    account->is_bounded = 1;
    lua_sethook(lua, stop, LUA_MASKCOUNT, FLP_LUA_INSTRUCTIONS);
    lua_settop(lua, 1);
    result = lua_pcall(lua, 0, 1, 0);
    lua_sethook(lua, NULL, 0, 0);
    account->limit = SIZE_MAX;
    account->is_bounded = 0;
    /* After an allocation that fails, Lua collects garbage and tries again. So an exceeded limit alone is no failure. */
    if (result != LUA_OK && account->stopped)
        lua_pushfstring(lua, "it takes more than %d instructions", FLP_LUA_INSTRUCTIONS);
    else if (result != LUA_OK && account->is_long)
        lua_pushfstring(lua, "it makes a string of more than %d KiB", FLP_LUA_STRING_KIBIBYTES);
    else if (result != LUA_OK && account->spent)
        lua_pushfstring(lua, "it allocates more than %d MiB in all", FLP_LUA_MEBIBYTES_IN_ALL);
    else if (result != LUA_OK && account->exceeded)
        lua_pushfstring(lua, "it takes more than %d MiB of memory", FLP_LUA_MEBIBYTES);
    lua_pushboolean(lua, result == LUA_OK);
    lua_insert(lua, -2);
    return 2;
}

/* Pushes and returns a module's file name: "gen/kernels/combine.lua" for "gen.kernels.combine". */
static const char *push_file_name(lua_State *lua, const char *module)
{
    luaL_gsub(lua, module, ".", "/");
    lua_pushliteral(lua, ".lua");
    lua_concat(lua, 2);
    return lua_tostring(lua, -1);
}

/* Upvalue 1: the source tree. */
static int require(lua_State *lua)
{
    const flp_source_tree *tree = lua_touserdata(lua, lua_upvalueindex(1));
    const char *module = luaL_checkstring(lua, 1), *name;
    const flp_embedded_file *file;

    lua_getfield(lua, LUA_REGISTRYINDEX, modules_key);
    if (lua_getfield(lua, -1, module) != LUA_TNIL)
        return 1;
    name = push_file_name(lua, module);
    file = flp_source_tree_find(tree, name);
    if (!file)
        return luaL_error(lua, "require: there is no %s", name);
    if (luaL_loadbufferx(lua, file->bytes, file->count, lua_pushfstring(lua, "@%s", name), "t") != LUA_OK)
        return lua_error(lua);
    lua_call(lua, 0, 1);
    if (!lua_istable(lua, -1))
        return luaL_error(lua, "require: %s returned no table", name);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, 2, module);
    return 1;
}

static int read_template(lua_State *lua)
{
    const flp_source_tree *tree = lua_touserdata(lua, lua_upvalueindex(1));
    const flp_embedded_file *file = flp_source_tree_find(tree, luaL_checkstring(lua, 1));

    if (file)
        lua_pushlstring(lua, file->bytes, file->count);
    else
        lua_pushnil(lua);
    return 1;
}

/* load(text, name, mode, globals). Source text alone is accepted, whatever mode says, because Lua does not check binary chunks, and one may be malicious. */
static int load_text(lua_State *lua)
{
    size_t count;
    const char *text = luaL_checklstring(lua, 1, &count), *name = luaL_checkstring(lua, 2);

    luaL_checktype(lua, 4, LUA_TTABLE);
    if (luaL_loadbufferx(lua, text, count, name, "t") != LUA_OK) {
        lua_pushnil(lua);
        lua_insert(lua, -2);
        return 2;
    }
    lua_pushvalue(lua, 4);
    lua_setupvalue(lua, -2, 1);
    return 1;
}

static int refuse_assignment(lua_State *lua)
{
    return luaL_error(lua, "global %s: there are no globals to assign", luaL_tolstring(lua, 2, NULL));
}

static void remove_fields(lua_State *lua, const char *const *names)
{
    for (; *names; names++) {
        lua_pushnil(lua);
        lua_setfield(lua, -2, *names);
    }
}

/* Opens Lua's base, string, table and math libraries without the functions that read files, write anywhere or differ from run to run. */
static void open_libraries(lua_State *lua)
{
    static const char *const base[] = { "dofile", "loadfile", "print", "warn", "collectgarbage", "_G", NULL };
    static const char *const random[] = { "random", "randomseed", NULL };

    luaL_requiref(lua, LUA_GNAME, luaopen_base, 1);
    remove_fields(lua, base);
    lua_pushcfunction(lua, load_text);
    lua_setfield(lua, -2, "load");
    luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 1);
    luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 1);
    luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 1);
    remove_fields(lua, random);
    lua_settop(lua, 1);
}

/* Gives loaded chunks an empty table as their globals. Reads fall through to the real globals, and assignments raise an error. */
static void protect_globals(lua_State *lua)
{
    lua_newtable(lua);
    lua_newtable(lua);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_assignment);
    lua_setfield(lua, -2, "__newindex");
    lua_pushboolean(lua, 0);
    lua_setfield(lua, -2, "__metatable");
    lua_setmetatable(lua, -2);
    lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

static int set_up(lua_State *lua)
{
    void *tree = lua_touserdata(lua, 1);

    open_libraries(lua);
    lua_newtable(lua);
    lua_setfield(lua, LUA_REGISTRYINDEX, modules_key);
    lua_pushlightuserdata(lua, tree);
    lua_pushcclosure(lua, require, 1);
    lua_pushvalue(lua, -1);
    lua_setglobal(lua, "require");
    lua_setfield(lua, LUA_REGISTRYINDEX, require_key);
    lua_register(lua, "bounded", bounded);
    protect_globals(lua);
    return 0;
}

flp_status flp_lua_state_create(const flp_source_tree *tree, lua_State **lua)
{
    account *account = calloc(1, sizeof(*account));
    flp_status status;

    if (account)
        account->limit = SIZE_MAX;
    *lua = account ? lua_newstate(allocate, account) : NULL;
    if (!*lua) {
        free(account);
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the generator");
    }
    status = flp_lua_state_run(*lua, set_up, (void *)(uintptr_t)tree);
    if (status != FLP_OK) {
        flp_lua_state_destroy(*lua);
        *lua = NULL;
    }
    return status;
}

void flp_lua_state_destroy(lua_State *lua)
{
    account *account;

    if (!lua)
        return;
    account = account_of(lua);
    lua_close(lua);
    free(account);
}

flp_status flp_lua_state_run(lua_State *lua, lua_CFunction body, void *data)
{
    /* Lua's numbers, patterns and comparisons follow the thread's locale and rounding mode, on which the emitted text must not depend. */
    locale_t callers = flp_locale_enter();
    flp_status status = FLP_OK;
    flp_arithmetic arithmetic;
    int result;

    flp_arithmetic_enter(&arithmetic);
    lua_settop(lua, 0);
    lua_pushcfunction(lua, body);
    lua_pushlightuserdata(lua, data);
    result = lua_pcall(lua, 1, 0, 0);
    if (result == LUA_ERRMEM) {
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the generator's work");
    } else if (result != LUA_OK) {
        const char *text = lua_tostring(lua, -1);
        status = flp_status_fail(FLP_INTERNAL, "generator: %s", text ? text : "an error without a text");
    }
    lua_settop(lua, 0);
    flp_arithmetic_leave(&arithmetic);
    flp_locale_leave(callers);
    return status;
}

void flp_lua_state_push_module(lua_State *lua, const char *module)
{
    lua_getfield(lua, LUA_REGISTRYINDEX, require_key);
    lua_pushstring(lua, module);
    lua_call(lua, 1, 1);
}

void flp_lua_state_push_reader(lua_State *lua, const flp_source_tree *tree)
{
    lua_pushlightuserdata(lua, (void *)(uintptr_t)tree);
    lua_pushcclosure(lua, read_template, 1);
}
