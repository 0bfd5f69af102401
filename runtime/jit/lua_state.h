/* A Lua state that can only compute: no files, no clock, no random numbers, no output. */
#ifndef FLP_JIT_LUA_STATE_H
#define FLP_JIT_LUA_STATE_H
#include <lua.h>

#include "jit/source_tree.h"

/* `require "gen.arch"` loads gen/arch.lua of tree, which stays the caller's and outlives the state. Globals cannot be assigned.
 * FLP_OUT_OF_MEMORY. */
flp_status flp_lua_state_create(const flp_source_tree *tree, lua_State **lua);

/* Runs body(lua) in protected mode with data as its only argument, a light userdata.
 * FLP_OUT_OF_MEMORY; FLP_INTERNAL: body raised an error, with its text. */
flp_status flp_lua_state_run(lua_State *lua, lua_CFunction body, void *data);

/* For a body: pushes the result of require(module). */
void flp_lua_state_push_module(lua_State *lua, const char *module);
/* For a body: pushes a function that takes "templates/any/simt.cuh" and returns that file's text, or nil. */
void flp_lua_state_push_reader(lua_State *lua, const flp_source_tree *tree);
#endif
