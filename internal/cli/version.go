package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build is what the binary knows about itself.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// NewBuild tells the build by the version and the commit that the linker set, as
// far as it did, and by what the go command wrote into the binary.
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
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit and the Go version of this binary",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := Table{}
			t.Add("version", b.Version)
			t.Add("commit", b.Commit)
			t.Add("go", b.Go+" "+b.OS+"/"+b.Arch)
			return Show(cmd, output, b, &t)
		},
	}
	AddOutput(cmd, &output)
	return cmd
}
