package tidy

import "strings"

// file is a change of one file of the clean house.
func file(name, body string) map[string]string { return map[string]string{name: body} }

const leaf = "package leaf\n"

var codeViolations = []violation{
	{"does not parse", file("internal/leaf/bad.go", "package leaf\n\nfunc {\n"), []string{"internal/leaf/bad.go:1: internal/leaf/bad.go:3:6: expected"}},
	{"Go file too long", file("internal/leaf/long.go", leaf+strings.Repeat("\n", maxFileLines)), []string{"internal/leaf/long.go:601: 601 lines"}},
	{"last line without newline counts", file("internal/leaf/long.go", leaf+strings.Repeat("\n", maxFileLines-1)+"//"), []string{"internal/leaf/long.go:601: 601 lines"}},
	{"script too long", file("console/app.js", strings.Repeat("\n", maxFileLines+1)), []string{"console/app.js:601: 601 lines"}},
	{"function too long", file("internal/leaf/long.go", leaf+"\nfunc long() {"+strings.Repeat("\n", maxFunctionLines)+"}\n"), []string{"internal/leaf/long.go:3: long has 71 lines"}},
	{"method in a test too long", file("internal/leaf/long_test.go", leaf+"\ntype t struct{}\n\nfunc (t) long() {"+strings.Repeat("\n", maxFunctionLines)+"}\n"), []string{"internal/leaf/long_test.go:5: long has 71 lines"}},
	{"literal too long", file("internal/leaf/long.go", leaf+"\nvar long = func() {"+strings.Repeat("\n", maxFunctionLines)+"}\n"), []string{"internal/leaf/long.go:3: function literal has 71 lines"}},
	{"literal inside a literal counts once", file("internal/leaf/long.go", leaf+"\nvar long = func() {\nfunc() {"+strings.Repeat("\n", maxFunctionLines)+"}()\n}\n"), []string{"internal/leaf/long.go:3: function literal has 73 lines"}},
	{"sleep in a test", file("lock/a_test.go", "package lock\n\nimport \"time\"\n\nfunc f() { time."+sleep+"(1) }\n"), []string{"lock/a_test.go:5: a test sleeps"}},
	{"sleep under another name", file("lock/a_test.go", "package lock\n\nimport clock \"time\"\n\nvar f = clock."+sleep+"\n"), []string{"lock/a_test.go:5: a test sleeps"}},
	{"sleep in a suite", file("lock/suite.go", "package lock\n\nimport (\n\t_ \"testing\"\n\t\"time\"\n)\n\nvar f = time."+sleep+"\n"), []string{"lock/suite.go:8: a test sleeps"}},
	{"skip", file("lock/a_test.go", "package lock\n\nfunc f(t T) {\n\tt."+skip+"(1)\n\tt."+skip+"f(1)\n\tt."+skip+"Now()\n}\n"), []string{"lock/a_test.go:4: a test is skipped", "lock/a_test.go:5: a test is skipped", "lock/a_test.go:6: a test is skipped"}},
	{"function without a comment", file("lock/a.go", "package lock\n\nfunc F() {}\n"), []string{"lock/a.go:3: F has no doc comment"}},
	{"directive is no comment", file("lock/a.go", "package lock\n\n//go:noinline\nfunc F() {}\n"), []string{"lock/a.go:4: F has no doc comment"}},
	{"method without a comment", file("lock/a.go", "package lock\n\n// T is T.\ntype T[K any] struct{}\n\nfunc (t *T[K]) F() {}\n"), []string{"lock/a.go:6: T.F has no doc comment"}},
	{"type without a comment", file("lock/a.go", "package lock\n\n// A group.\ntype (\n\tT struct{}\n)\n"), []string{"lock/a.go:5: T has no doc comment"}},
	{"values without a comment", file("lock/a.go", "package lock\n\nvar A, b, C = 1, 2, 3\n\nconst D = 4\n"), []string{"lock/a.go:3: A has no doc comment", "lock/a.go:3: C has no doc comment", "lock/a.go:5: D has no doc comment"}},
	{"package without a comment", file("lock/inner/inner.go", "package inner\n"), []string{"lock/inner/inner.go:1: package inner has no package comment"}},
	{"vague package", file("internal/util/util.go", "// Package util is a drawer.\npackage util\n"), []string{"internal/util/util.go:2: package util: name it"}},
}

var importViolations = []violation{
	{"domain imports a library", file("a.go", "package house\n\nimport _ \"example.org/driver\"\n"), []string{"a.go:3: imports example.org/driver: the domain"}},
	{"domain imports an adapter", file("a.go", "package house\n\nimport _ \"example.com/house/lock\"\n"), []string{"a.go:3: imports example.com/house/lock: the domain"}},
	{"domain imports internal", file("a.go", "package house\n\nimport _ \"example.com/house/internal/leaf\"\n"), []string{"a.go:3: imports example.com/house/internal/leaf: the domain"}},
	{"adapter imports an adapter", file("lock/a.go", "package lock\n\nimport _ \"example.com/house/idgen\"\n"), []string{"lock/a.go:3: imports example.com/house/idgen: adapters never"}},
	{"adapter imports inside an adapter", file("httpapi/x/a.go", "// Package x is.\npackage x\n\nimport _ \"example.com/house/lock/inner\"\n"), []string{"httpapi/x/a.go:4: imports example.com/house/lock/inner: adapters never"}},
	{"contract imports an adapter", file("enginetest/a.go", "// Package enginetest is.\npackage enginetest\n\nimport _ \"example.com/house/memengine\"\n"), []string{"enginetest/a.go:4: imports example.com/house/memengine: adapters never"}},
	{"adapter imports the lab", file("client/a.go", "package client\n\nimport _ \"example.com/house/lab\"\n"), []string{"client/a.go:3: imports example.com/house/lab: adapters do not"}},
	{"adapter imports the program", file("client/a.go", "package client\n\nimport _ \"example.com/house/internal/cli/node\"\n"), []string{"client/a.go:3: imports example.com/house/internal/cli/node: adapters do not"}},
	{"a name like the program's", file("internal/clients/a.go", "// Package clients is.\npackage clients\n\nimport _ \"example.com/house\"\n"), []string{"internal/clients/a.go:4: imports example.com/house: internal"}},
	{"internal imports the domain", file("internal/leaf/a.go", "package leaf\n\nimport _ \"example.com/house\"\n"), []string{"internal/leaf/a.go:3: imports example.com/house: internal"}},
	{"internal test imports an adapter", file("internal/leaf/a_test.go", "package leaf\n\nimport _ \"example.com/house/lock\"\n"), []string{"internal/leaf/a_test.go:3: imports example.com/house/lock: internal"}},
	{"cgo", file("lab/a.go", "package lab\n\nimport \"C\"\n"), []string{"lab/a.go:3: imports C: the binary is static"}},
}

var textViolations = []violation{
	{"machine paths", file("docs/A.md", "see "+workDir+"x\n\nand "+rootDir+"y\n"), []string{"docs/A.md:1: names " + workDir, "docs/A.md:3: names " + rootDir}},
	{"machine path in CI", file(".ci/run", "cd "+workDir+"main\n"), []string{".ci/run:1: names " + workDir}},
	{"registry", file("docs/A.md", host+"\n"), []string{"docs/A.md:1: names " + host}},
	{"unfinished", file("lock/a.go", "package lock\n\nvar a = 1 // "+later+": b\n\nvar b = \""+undone+"\"\n"), []string{"lock/a.go:3: says \"" + later, "lock/a.go:5: says \"" + undone}},
	{"excuses", file("lock/a_test.go", "package lock\n\n// A "+hack+".\nvar a = 1 // Good enough "+forNow+".\n"), []string{"lock/a_test.go:3: says \"" + hack, "lock/a_test.go:4: says \"" + forNow}},
	{"no README", file("README.md", gone), []string{
		"README.md:1: there is no README.md", "README.zh-CN.md:3: the link to ./README.md leads nowhere: there is no such file", "docs/FLOW.md:5: the link to ../README.md leads nowhere",
	}},
	{"no Chinese README", map[string]string{"README.zh-CN.md": gone, "README.md": "x\n", "docs/FLOW.md": "x\n"}, []string{"README.md:1: does not link to README.zh-CN.md", "README.zh-CN.md:1: there is no"}},
	{"README without the other language", file("README.zh-CN.md", "## 开始\n\n[流程](docs/FLOW.md)\n"), []string{"README.zh-CN.md:1: does not link to README.md"}},
	{"dead links", file("docs/A.md", "[a](gone.md) ![b](img/gone.png \"b\")\n[c]: gone.txt\n<a href=\"gone/\">d</a>\n"), []string{
		"docs/A.md:1: the link to gone.md leads nowhere", "docs/A.md:1: the link to img/gone.png leads nowhere",
		"docs/A.md:2: the link to gone.txt leads nowhere", "docs/A.md:3: the link to gone/ leads nowhere",
	}},
	{"dead anchors", file("docs/A.md", "[a](FLOW.md#flown) [b](#b) [c](/README.zh-CN.md#结束)\n"), []string{
		"docs/A.md:1: the link to #b leads nowhere: no heading", "docs/A.md:1: the link to /README.zh-CN.md#结束 leads nowhere: no heading",
		"docs/A.md:1: the link to FLOW.md#flown leads nowhere: no heading",
	}},
	{"link out of the repository", file("docs/A.md", "[a](../../b.md)\n"), []string{"docs/A.md:1: the link to ../../b.md leads nowhere: it leaves"}},
	{"line numbers below a code block", file("docs/A.md", "~~~\n[x](x)\n```\n~~~\n[a](b.md)\n"), []string{"docs/A.md:5: the link to b.md"}},
}

// script is the clean claim script with one text replaced by another.
func script(before, after string) map[string]string {
	return file("redisengine/lua/claim.lua", strings.Replace(claimScript, before, after, 1))
}

const claimLua = "redisengine/lua/claim.lua:1: "

var luaViolations = []violation{
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
}
