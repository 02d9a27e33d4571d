package cli

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Near returns the one of some words that a mistyped word most likely means; empty when
// none is close.
func Near(word string, words []string) string {
	// A word of three letters is another one after two changes.
	best, least := "", 1+min(2, len(word)/3)
	for _, w := range words {
		if d := distance(strings.ToLower(word), strings.ToLower(w)); d < least {
			best, least = w, d
		}
	}
	if best != "" || len(word) < 2 {
		return best
	}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, strings.ToLower(word)) }); i >= 0 {
		return words[i]
	}
	return ""
}

// Meant returns the question that follows a mistyped word, `; did you mean create?`; empty
// when no word is close. before stands before the word, as -- before a flag.
func Meant(word string, words []string, before string) string {
	if near := Near(word, words); near != "" {
		return "; did you mean " + before + near + "?"
	}
	return ""
}

// distance counts the letters to insert, remove, replace, or swap with the next one, to
// make one word another.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Words says which words there are, `a, b or c`.
func Words(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// flagFault says what is wrong with a flag, in words that do not come from Go. A family of
// verbs is asked for its flags when the verb itself is mistyped: that is the fault then.
func flagFault(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		hint := cmp.Or(Meant(unknown.GetSpecifiedName(), names, "--"), "; "+cmd.CommandPath()+" --help lists the flags")
		return Usagef("%w%s", err, hint)
	}
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		f := bad.GetFlag()
		if what := wanted[f.Value.Type()]; what != "" {
			return Usagef("--%s must be %s, not %q", f.Name, what, bad.GetValue())
		}
		if word := (*wordError)(nil); errors.As(err, &word) {
			return Usagef("--%s %w", f.Name, word)
		}
		return Usagef("--%s %w, not %q", f.Name, errors.Unwrap(err), bad.GetValue())
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return Usagef("--%s needs a value", missing.GetSpecifiedName())
	}
	return Usage(err)
}

// wanted says what a flag of a type takes.
var wanted = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number that is not negative", "float64": "a number",
	"duration": "a duration such as 15m or 1h30m", "bool": "true or false", "intSlice": "whole numbers separated by commas",
}

// unknownCommand names the verbs that a mistyped one may mean.
func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	hint := cmp.Or(Meant(word, names, ""), "; "+cmd.CommandPath()+" --help lists the commands")
	return Usagef("there is no command %q%s", strings.TrimPrefix(cmd.CommandPath()+" "+word, "dibs "), hint)
}

// argumentFault says which argument is missing, or is one too many, with an example.
func argumentFault(cmd *cobra.Command, args []string, err error) error {
	names := argumentNames(cmd)
	such := ""
	if e := example(cmd, names); e != "" {
		such = "; for example: " + e
	}
	switch {
	case len(args) < len(names):
		return Usagef("%s is missing%s", names[len(args)], such)
	case len(names) == 0:
		return Usagef("%s takes no argument, and there is %q%s", cmd.CommandPath(), args[0], such)
	case len(args) > len(names):
		return Usagef("%q is one argument too many%s", args[len(names)], such)
	}
	if len(cmd.ValidArgs) > 0 {
		for _, arg := range args {
			if !slices.Contains(cmd.ValidArgs, arg) {
				return Usagef("must be %s, not %q%s", Words(cmd.ValidArgs), arg, Meant(arg, cmd.ValidArgs, ""))
			}
		}
	}
	return Usagef("%w; usage: %s", err, cmd.UseLine())
}

// emptyArgument refuses an argument without a character, as a variable that is not set leaves it: as a part of a path it
// would name something else. Only a TEXT may be empty.
func emptyArgument(cmd *cobra.Command, args []string) error {
	for i, name := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(name, "-") || i >= len(args) {
			break
		}
		if name = strings.Trim(name, "[]."); args[i] == "" && name != "TEXT" {
			return Usagef("%s is empty; for example: %s", name, example(cmd, argumentNames(cmd)))
		}
	}
	return nil
}

// argumentNames are the arguments that a verb's line of use requires, before its flags.
func argumentNames(cmd *cobra.Command) []string {
	words := strings.Fields(cmd.Use)
	var names []string
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") || strings.HasPrefix(w, "[") {
			break
		}
		names = append(names, w)
	}
	return names
}

// example is a command that works: the first of the verb's own examples, or one made of
// what its arguments look like.
func example(cmd *cobra.Command, names []string) string {
	for line := range strings.Lines(continued.ReplaceAllString(cmd.Example, " ")) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
		if line = strings.TrimSpace(line); strings.HasPrefix(line, cmd.CommandPath()) {
			return line
		}
	}
	parts := []string{cmd.CommandPath()}
	for _, name := range names {
		parts = append(parts, looks(cmd, name))
	}
	required(cmd, func(f *pflag.Flag) {
		value, _ := pflag.UnquoteUsage(f)
		parts = append(parts, "--"+f.Name+" "+value)
	})
	return strings.Join(parts, " ")
}

// continued matches the end of a line that goes on in the next one.
var continued = regexp.MustCompile(`\s*\\\n\s*`)

// looks is what an argument may look like.
func looks(cmd *cobra.Command, name string) string {
	switch name {
	case "ID", "CAMPAIGN":
		if cmd.HasParent() && name == "ID" {
			if id, ok := ids[cmd.Parent().Name()]; ok {
				return id
			}
		}
		return ids["campaign"]
	case "ENDPOINT":
		return ids["endpoints"]
	case "USER":
		return "42"
	case "TEXT":
		return strconv.Quote("a few words")
	case "FILE":
		return "file.csv"
	}
	return name
}

// ids are what the ids of things look like.
var ids = map[string]string{
	"campaign": "phone-noon", "product": "phone-x", "claim": "7K3M9QX2B4TD6RWA", "announcement": "ann-7K3M9QX2B4TD",
	"key": "k-7K3M9QX2B4TD", "coupon": "spring", "session": "s-7K3M9QX2B4TD", "token": "r-7K3M9QX2B4TD", "approval": "ap-7K3M9QX2B4TD", "audience": "vip",
	"endpoints": "wh-7K3M9QX2B4TD",
}

// completeWords lets shells complete the flags that take one of some words, those of OneOf
// and of settings.
func completeWords(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		c, ok := f.Value.(interface{ Words() []string })
		if !ok || len(c.Words()) == 0 {
			return
		}
		// Registering fails for a flag that has a completion: it stays.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(c.Words(), cobra.ShellCompDirectiveNoFileComp))
	})
}

// helpLast returns a command line that asks for help before the command is named, as `dibs -h campaign list` does, with
// what asks behind the command: cobra looks for it there alone. Words that no command has stay where they are, as do
// those behind them.
func helpLast(root *cobra.Command, args []string) []string {
	// Not nil: cobra would take the arguments of the process in its place.
	words, asked, at := []string{}, []string{}, root
	for i, arg := range args {
		if arg == "--help" || arg == "-h" {
			asked = append(asked, arg)
			continue
		}
		next := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == arg || c.HasAlias(arg) })
		if next < 0 {
			return slices.Concat(words, asked, args[i:])
		}
		words, at = append(words, arg), at.Commands()[next]
	}
	return append(words, asked...)
}

// unknownHelp is the fault of a command line that asks for the help of a command that there is not; nil for any other
// one. To cobra, asking for help is never a fault.
func unknownHelp(root *cobra.Command, args []string) error {
	at, rest, err := root.Find(args)
	if err != nil || !at.HasSubCommands() {
		return nil
	}
	asked := slices.ContainsFunc(rest, func(arg string) bool { return arg == "--help" || arg == "-h" })
	i := slices.IndexFunc(rest, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if !asked || i < 0 {
		return nil
	}
	return unknownCommand(at, rest[i])
}

// helpVerb is the verb help. Asked for a command that there is not, it fails, as the
// command would.
func helpVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, word := range args {
				i := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
				if i < 0 {
					return unknownCommand(at, word)
				}
				at = at.Commands()[i]
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}
