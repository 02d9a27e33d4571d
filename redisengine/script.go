package redisengine

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"slices"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// script is one operation, as Redis runs it.
type script struct {
	name, text, sha string
	// waits is set when what it tells must have reached the replicas.
	waits bool
}

// answering are the scripts whose answers callers rely on.
var answering = []string{"claim", "release", "adjust", "configure", "stats", "find", "holdings", "shut", "open", "retire"}

// newScript reads lua/name.lua, behind the part that all shard scripts share.
func newScript(name string) *script {
	text := luaText("shard") + luaText(name)
	sum := sha1.Sum([]byte(text))
	return &script{name: name, text: text, sha: hex.EncodeToString(sum[:]), waits: slices.Contains(answering, name)}
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
	claimScript     = newScript("claim")
	releaseScript   = newScript("release")
	adjustScript    = newScript("adjust")
	configureScript = newScript("configure")
	statsScript     = newScript("stats")
	findScript      = newScript("find")
	holdingsScript  = newScript("holdings")
	shutScript      = newScript("shut")
	loadScript      = newScript("load")
	openScript      = newScript("open")
	retireScript    = newScript("retire")
	trimScript      = newScript("trim")
	forgetScript    = newScript("forget")
	expelScript     = newScript("expel")
	haltScript      = newScript("halt")
	serverScript    = newScript("server")
	leaseScript     = newScript("lease")
	unleaseScript   = newScript("unlease")
	watchScript     = newScript("watch")
	probeScript     = newScript("probe")

	scripts = []*script{
		claimScript, releaseScript, adjustScript, configureScript, statsScript, findScript, holdingsScript,
		shutScript, loadScript, openScript, retireScript, trimScript, forgetScript, expelScript, haltScript, serverScript, leaseScript, unleaseScript,
		watchScript, probeScript,
	}
)
