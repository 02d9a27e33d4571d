package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// againstParts are what is compared when -only names nothing: what settling and claiming cost.
const againstParts = "grants,settle"

// against compares this program with the bench of another commit: both measure the same parts in turns, one round at a time,
// and what is printed is the ratio of each figure to the other program's in the same turn. On a machine whose speed changes
// from minute to minute only neighbours compare, and the spread of the ratios says how far. The other program needs nothing
// but the flags -only, -rounds, -callers, -claims and -holders, and tables as this one prints them.
func against(ctx context.Context, o *options) error {
	if o.rounds < 1 {
		return fmt.Errorf("-rounds %d: -against needs at least one turn", o.rounds)
	}
	other, err := exec.LookPath(o.against)
	if err != nil {
		return fmt.Errorf("-against: %w", err)
	}
	this, err := os.Executable()
	if err != nil {
		return err
	}
	return compare(ctx, o, this, other)
}

// compare runs two programs in turns and prints how their figures compare.
func compare(ctx context.Context, o *options, this, other string) error {
	args := []string{"-only", cmp.Or(o.only, againstParts), "-rounds", "1",
		"-callers", strconv.Itoa(o.callers), "-claims", strconv.Itoa(o.claims), "-holders", strconv.Itoa(o.holders)}
	var names []string
	values := map[string][2][]float64{}
	for turn := range o.rounds {
		// The one that begins has the machine as the turn before left it: each does so every other time.
		order := []int{turn % 2, 1 - turn%2}
		for _, which := range order {
			figures, err := figuresOf(ctx, []string{this, other}[which], args)
			if err != nil {
				return err
			}
			for _, f := range figures {
				both, known := values[f.name]
				if !known {
					names = append(names, f.name)
				}
				both[which] = append(both[which], f.value)
				values[f.name] = both
			}
		}
		fmt.Printf("turn %d of %d is done\n", turn+1, o.rounds)
	}
	return printRatios(o, names, values)
}

// printRatios prints a row for each figure that both programs have in each turn, and names the others.
func printRatios(o *options, names []string, values map[string][2][]float64) error {
	fmt.Printf("\n| figure, %d turns | this | %s | ratio | least | most |\n|---|---|---|---|---|---|\n", o.rounds, o.against)
	var alone []string
	for _, name := range names {
		ours, theirs := values[name][0], values[name][1]
		if len(ours) != o.rounds || len(theirs) != o.rounds || slices.Contains(theirs, 0) {
			alone = append(alone, name)
			continue
		}
		ratios := make([]float64, o.rounds)
		for i := range ratios {
			ratios[i] = ours[i] / theirs[i]
		}
		// median sorts, so that the ratios come first, turn by turn.
		middle := median(ratios)
		fmt.Printf("| %s | %.5g | %.5g | %.3f | %.3f | %.3f |\n", name, median(ours), median(theirs), middle, ratios[0], ratios[o.rounds-1])
	}
	if len(alone) > 0 {
		fmt.Printf("\nNot compared, since a turn of one of the two lacks it, or it was 0: %s\n", strings.Join(alone, "; "))
	}
	if len(alone) == len(names) {
		return errors.New("the two programs have no figure in common")
	}
	return nil
}

// figuresOf runs a program and reads its tables.
func figuresOf(ctx context.Context, program string, args []string) ([]figure, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return figures(string(out)), nil
}

// figure is a number of a table, by its part, its row and its column.
type figure struct {
	name  string
	value float64
}

// figures reads the numbers of all tables. A row whose first cell is no number is named by it; any other cell that does not
// begin with a number is left out. Units after a number are left out too.
func figures(out string) (all []figure) {
	part := ""
	var columns []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		switch name, isPart := strings.CutPrefix(line, "## "); {
		case isPart:
			part, columns = name, nil
		case !strings.HasPrefix(line, "|"):
			columns = nil
		case strings.HasPrefix(line, "|--"):
		case columns == nil:
			columns = cells(line)
		default:
			row := cells(line)
			if len(row) != len(columns) {
				continue
			}
			label := part + ": "
			if _, ok := number(row[0]); !ok {
				label += row[0] + ", "
			}
			for i, cell := range row {
				if v, ok := number(cell); ok {
					all = append(all, figure{label + columns[i], v})
				}
			}
		}
	}
	return all
}

// cells divides a row of a table.
func cells(line string) []string {
	parts := strings.Split(strings.Trim(line, "|"), "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// number is the number that a cell begins with, before a space or a percent sign.
func number(cell string) (float64, bool) {
	first, _, _ := strings.Cut(cell, " ")
	v, err := strconv.ParseFloat(strings.TrimSuffix(first, "%"), 64)
	return v, err == nil
}
