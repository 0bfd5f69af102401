/* A Lua state that can only compute: no files, no clock, no random numbers, no output. */
#ifndef FLP_JIT_LUA_STATE_H
#define FLP_JIT_LUA_STATE_H
#include <lua.h>

#include "jit/source_tree.h"

/* Limits of bounded(), which runs a user's definition of a token loss: far more than a useful one needs. An instruction may copy or compare long strings, so
 * that only the limits of a string's length and of what is allocated in all, whether it was freed again or not, bound the time. */
enum { FLP_LUA_INSTRUCTIONS = 10000000, FLP_LUA_MEBIBYTES = 64, FLP_LUA_MEBIBYTES_IN_ALL = 1024, FLP_LUA_STRING_KIBIBYTES = 64 };

/* Creates a state. In it `require "gen.arch"` loads gen/arch.lua of tree, which is borrowed and must outlive the state. Globals cannot be assigned.
 * bounded(f) is pcall(f) with the limits above; where f exceeds one, it returns false and a message that names the limit. FLP_OUT_OF_MEMORY. */
flp_status flp_lua_state_create(const flp_source_tree *tree, lua_State **lua);
/* NULL is allowed. */
void flp_lua_state_destroy(lua_State *lua);

/* Runs body(lua) in protected mode with data as its only argument, a light userdata.
 * FLP_OUT_OF_MEMORY; FLP_INTERNAL: body raised an error, whose text the message has. */
flp_status flp_lua_state_run(lua_State *lua, lua_CFunction body, void *data);

/* For a body: pushes the result of require(module). */
void flp_lua_state_push_module(lua_State *lua, const char *module);
/* For a body: pushes a function that takes "templates/parts/simt.cuh" and returns that file's text, or nil. */
void flp_lua_state_push_reader(lua_State *lua, const flp_source_tree *tree);
#endif
