// Command screens photographs the pages of a dibs that it starts: every screen, in
// English and Chinese, light and dark, on a desk and on a telephone.
//
//	go run ./internal/screens -out /tmp/screens
//
// A browser's complaints end it with 1: errors on the console, requests to elsewhere,
// and what breaks the pages' policy. The other screens are photographed all the same.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options say what is photographed, of which server.
// url and login belong together: the console's screens need both.
type options struct {
	// out is the folder for the pictures; none are kept where it is empty.
	out string
	// url is a running `dibs dev`, and login the address that signs in to its console; one is started without them.
	url, login string
	// only photographs screens whose name contains one of these, which commas divide.
	only  string
	looks []look
	// turned looks at each screen in the other shade at the other width, too, without loading it again.
	turned bool
	// spread looks at each screen in one of the looks only, by turns.
	spread bool
	// measure prints how fast pages show, how packets fall and what watchers cost; live is how long a live screen is
	// watched. Both are in place of pictures.
	measure bool
	live    time.Duration
	// consoles measures what ten open consoles cost a rush, in place of pictures.
	consoles bool
	// pictures is the folder of the pictures that the READMEs show, "" for those of all screens.
	pictures string
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "screens", "the folder for the pictures")
	flag.StringVar(&o.url, "url", "", "a running `dibs dev`; one is started without it")
	flag.StringVar(&o.login, "login", "", "the address that signs in to the console of -url")
	flag.StringVar(&o.only, "only", "", "photograph only screens whose name contains one of these, divided by commas")
	flag.BoolVar(&o.measure, "measure", false, "in place of pictures, measure how fast pages show, how smoothly packets fall, and what 1,000 watchers cost the server; 1 beyond a limit")
	flag.DurationVar(&o.live, "live", 0, "in place of pictures, watch a live screen for this long under 1,000 grants a second; 1 if it grows or stalls")
	flag.BoolVar(&o.consoles, "consoles", false, "in place of pictures, measure what ten open consoles cost a rush; 1 if it is more than 2 %")
	flag.StringVar(&o.pictures, "pictures", "", "photograph only what the READMEs show, into this folder")
	quick := flag.Bool("quick", false, "English and light alone, on desk and telephone")
	flag.Parse()
	o.looks = looks(*quick)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	faults, err := run(ctx, o)
	stop()
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "screens:", err)
	}
	if err != nil || len(faults) > 0 {
		os.Exit(1)
	}
}

// startsWithin is how long a server may take to start, which has to be built first.
// Building all of dibs from nothing takes minutes on a small machine.
const startsWithin = 5 * time.Minute

var (
	servedAt = regexp.MustCompile(`(?m)^  API +(\S+)`)
	loginAt  = regexp.MustCompile(`(?m)^  Console +(\S+)`)
)

// run photographs what is asked for, and returns what is wrong with it.
// faults are what pages do wrong; an error means that not all of them were seen.
func run(ctx context.Context, o options) (faults []string, err error) {
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return nil, err
		}
	}
	if o.url == "" {
		var stop func()
		if o.url, o.login, stop, err = startDev(ctx); err != nil {
			return nil, err
		}
		defer stop()
	}
	b, err := openBrowser(ctx, o.measure || o.consoles || o.live > 0)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if o.login != "" {
		if err := b.signIn(o.login); err != nil {
			return nil, fmt.Errorf("signing in: %w", err)
		}
		if err := b.eval(sample); err != nil {
			return nil, fmt.Errorf("making what the screens show: %w", err)
		}
	}
	switch {
	case o.live > 0:
		return live(ctx, b, o.url, o.live)
	case o.consoles:
		return consoles(ctx, b, o.url)
	case o.measure:
		return measure(ctx, b, o.url)
	case o.pictures != "":
		return readmePictures(b, o)
	}
	return photographs(b, o)
}

// photographs looks at every screen in its looks, and returns what is wrong with them. It keeps a picture of
// each where there is a folder for them.
func photographs(b *browser, o options) (faults []string, err error) {
	for i, l := range o.looks {
		var turns []look
		if o.turned {
			turns = []look{l.turned()}
		}
		for k, s := range screens() {
			if o.spread && k%len(o.looks) != i {
				continue
			}
			if !slices.ContainsFunc(strings.Split(o.only, ","), func(part string) bool { return strings.Contains(s.name, part) }) {
				continue
			}
			name, file := s.name+"-"+l.name(), ""
			if o.out != "" {
				file = filepath.Join(o.out, name+".png")
			}
			wrong, err := b.photograph(o.url, s, l, turns, file)
			if err != nil {
				return faults, fmt.Errorf("%s: %w", name, err)
			}
			for _, w := range wrong {
				faults = append(faults, name+": "+w)
			}
			fmt.Println(cmp.Or(file, name))
		}
	}
	return faults, nil
}

// readmePictures keeps the pictures of the READMEs.
func readmePictures(b *browser, o options) (faults []string, err error) {
	if err := os.MkdirAll(o.pictures, 0o755); err != nil {
		return nil, err
	}
	for _, p := range pictured() {
		wrong, err := b.photograph(o.url, p.screen, p.look, nil, filepath.Join(o.pictures, p.file))
		if err != nil {
			return faults, fmt.Errorf("%s: %w", p.file, err)
		}
		for _, w := range wrong {
			faults = append(faults, p.file+": "+w)
		}
	}
	return faults, nil
}

// startDev starts `dibs dev` and returns its address, and the one that signs in.
// The caller calls stop, which removes the server's files. After an error there is
// nothing to stop.
func startDev(ctx context.Context) (url, login string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "dibs-screens-")
	if err != nil {
		return "", "", nil, err
	}
	bin := filepath.Join(dir, "dibs")
	// As a release is built, and everything else that tests build: else all is compiled once more.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "github.com/dibs-dev/dibs/cmd/dibs")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", "", nil, fmt.Errorf("building dibs: %w\n%s", err, said)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", "", nil, err
	}
	// The system chooses a port, so runs beside each other do not meet.
	cmd := exec.CommandContext(ctx, bin, "dev", "--listen", "127.0.0.1:0", "--approve", "deposits")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return "", "", nil, err
	}
	stop = func() {
		// Its work is done: how it ends does not matter any more.
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = log.Close()
		_ = os.RemoveAll(dir)
	}
	for deadline := time.Now().Add(startsWithin); time.Now().Before(deadline) && ctx.Err() == nil; {
		said, err := os.ReadFile(log.Name())
		if err == nil && strings.Contains(string(said), "Ctrl-C stops") {
			return first(servedAt, said), first(loginAt, said), stop, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	return "", "", nil, fmt.Errorf("dibs dev did not start")
}

// first is the first group of a pattern's first match, "" for none.
func first(pattern *regexp.Regexp, text []byte) string {
	if m := pattern.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}
