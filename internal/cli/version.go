package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build identifies the binary: its version, its commit, and what compiled it.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// NewBuild returns the build of this binary. version and commit are the linker's,
// empty when it set none; then NewBuild takes them from what the go command wrote
// into the binary.
func NewBuild(version, commit string) Build {
	b := Build{Version: version, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.Commit == "" {
			b.Commit = s.Value
		}
	}
	if b.Commit == "" {
		b.Commit = "unknown"
	}
	return b
}

// VersionVerb returns the verb version, which shows the build.
func VersionVerb(b Build) *cobra.Command {
	return WithOutput(&cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit and the Go version of this binary",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := NewTable()
			t.Add("version", b.Version)
			t.Add("commit", b.Commit)
			t.Add("go", b.Go+" "+b.OS+"/"+b.Arch)
			return Show(cmd, b, t)
		},
	})
}
