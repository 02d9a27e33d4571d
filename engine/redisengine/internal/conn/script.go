package conn

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"slices"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// Script is one operation, as Redis runs it.
type Script struct {
	Name, text, sha string
	// waits is set when what it tells must have reached the replicas.
	waits bool
}

// answering are the scripts whose answers callers rely on.
var answering = []string{"claim", "release", "adjust", "configure", "stats", "find", "holdings", "shut", "open", "retire"}

// scripts are the operations, as they are made.
var scripts []*Script

// newScript reads lua/name.lua, behind the part that all shard scripts share.
func newScript(name string) *Script {
	s := RawScript(luaText("shard") + luaText(name))
	s.Name, s.waits = name, slices.Contains(answering, name)
	scripts = append(scripts, s)
	return s
}

// RawScript is a script of a caller of the engine. Its answer must have reached the
// replicas.
func RawScript(text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{Name: "raw", text: text, sha: hex.EncodeToString(sum[:]), waits: true}
}

func luaText(name string) string {
	b, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		// The files are part of the binary: one that is not there never was.
		panic(err)
	}
	return string(b)
}

// The operations.
var (
	ClaimScript     = newScript("claim")
	ReleaseScript   = newScript("release")
	AdjustScript    = newScript("adjust")
	ConfigureScript = newScript("configure")
	StatsScript     = newScript("stats")
	FindScript      = newScript("find")
	HoldingsScript  = newScript("holdings")
	ShutScript      = newScript("shut")
	LoadScript      = newScript("load")
	CountScript     = newScript("count")
	OpenScript      = newScript("open")
	RetireScript    = newScript("retire")
	TrimScript      = newScript("trim")
	ListScript      = newScript("list")
	ForgetScript    = newScript("forget")
	ExpelScript     = newScript("expel")
	HaltScript      = newScript("halt")
	ServerScript    = newScript("server")
	LeaseScript     = newScript("lease")
	UnleaseScript   = newScript("unlease")
	WatchScript     = newScript("watch")
	ProbeScript     = newScript("probe")
)
