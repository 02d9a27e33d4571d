package cli

import (
	"github.com/spf13/cobra"
)

// shells are those that the completion verb writes scripts for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// CompletionVerb returns the verb completion.
func CompletionVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell's completion script",
		Long: `Print a shell's completion script. To load it in every session:

  bash        dibs completion bash > /etc/bash_completion.d/dibs
  zsh         dibs completion zsh > "${fpath[1]}/_dibs"
  fish        dibs completion fish > ~/.config/fish/completions/dibs.fish
  powershell  dibs completion powershell >> $PROFILE`,
		ValidArgs: shells,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(out)
			case "fish":
				return cmd.Root().GenFishCompletion(out, true)
			default:
				return cmd.Root().GenPowerShellCompletionWithDesc(out)
			}
		},
	}
}
