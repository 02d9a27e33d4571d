package cli

import (
	"cmp"
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
	b.Version = cmp.Or(b.Version, info.Main.Version, "dev")
	if b.Version == "(devel)" {
		b.Version = "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.Commit == "" {
			b.Commit = s.Value
		}
	}
	b.Commit = cmp.Or(b.Commit, "unknown")
	return b
}

// VersionVerb returns the verb version, which shows the build.
func VersionVerb(b Build) *cobra.Command {
	return WithOutput(&cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit and the Go version of this binary",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Show(cmd, b, Facts("version", b.Version, "commit", b.Commit, "go", b.Go+" "+b.OS+"/"+b.Arch))
		},
	})
}
