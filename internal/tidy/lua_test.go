package tidy

import (
	"strings"
	"testing"
)

// script is the clean claim script with one text replaced by another.
func script(before, after string) map[string]string {
	return file("redisengine/lua/claim.lua", strings.Replace(claimScript, before, after, 1))
}

const claimLua = "redisengine/lua/claim.lua:1: "

// TestScripts finds faults of the headers of Lua scripts.
func TestScripts(t *testing.T) {
	find(t, []violation{
		{"no header", file("lab/a.lua", "return 1\n"), []string{
			"lab/a.lua:1: the header does not begin with the purpose", "lab/a.lua:1: the header has no line that begins with ARGV",
			"lab/a.lua:1: the header has no line that begins with KEYS", "lab/a.lua:1: the header has no line that begins with Retry",
			"lab/a.lua:1: the header has no line that begins with Returns",
		}},
		{"no purpose", script("-- Claims one unit.\n", ""), []string{claimLua + "the header does not begin"}},
		{"no word on retries", script("-- Retry: not safe; -- ask by claim id.\n", ""), []string{claimLua + "the header has no line that begins with Retry"}},
		{"body uses more", script("ARGV[1]\n", "ARGV[1] .. ARGV[2]\n"), []string{claimLua + "the body uses ARGV[2]"}},
		{"header tells more", script("-- ARGV[1] user", "-- ARGV[1] user, ARGV[2] units"), []string{claimLua + "the header tells of ARGV[2]"}},
		{"range begins later", script("-- KEYS[1] stock, s:{campaign:shard}", "-- KEYS[2..] stock"), []string{claimLua + "the body uses KEYS[1]"}},
		{"computed index without a word", file("lab/a.lua", "-- A.\n-- KEYS many\n-- ARGV none\n-- Returns 0\n-- Retry: safe.\nreturn KEYS[i]\n"), []string{"lab/a.lua:1: the body uses KEYS, the header names none"}},
	})
}
