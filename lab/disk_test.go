package lab

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// The time is of a sync, leaves no file, and is told with what it means.
func TestSyncTime(t *testing.T) {
	dir := t.TempDir()
	took, err := syncTime(dir)
	if err != nil || took <= 0 {
		t.Fatalf("%s, %v", took, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%d files are left: %v", len(left), err)
	}
	if _, err := syncTime(dir + "/none"); err == nil {
		t.Error("a folder that is not there has a sync time")
	}
	r := Report{SyncMS: 4}
	var out strings.Builder
	if err := r.Table(&out); err != nil || !strings.Contains(out.String(), "a sync of this disk takes 4.00 ms: 20 callers") || !strings.Contains(out.String(), "5,000 durable answers/s") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	// Of the disk of a Redis that was given nothing is known.
	out.Reset()
	r.redisGiven = true
	if err := r.Table(&out); err != nil || strings.Contains(out.String(), "a sync") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

// A lab that was stopped says so, and judges nothing that it has not run.
func TestStoppedLab(t *testing.T) {
	for _, test := range []struct {
		report      Report
		has, hasNot string
	}{
		{Report{Planned: 5}, "stopped after 0 of 5 runs", "held its promises"},
		{Report{Planned: 2, Results: []Result{{Strategy: "by-stock"}}}, "stopped after 1 of 2 runs", ""},
		{Report{Planned: 1, Results: []Result{{Strategy: "by-stock"}}}, "every safe strategy that was run held its promises", "stopped"},
	} {
		var out strings.Builder
		if err := test.report.Table(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), test.has) || test.hasNot != "" && strings.Contains(out.String(), test.hasNot) {
			t.Errorf("%+v:\n%s", test.report, out.String())
		}
		if test.report.OK() != (len(test.report.Results) == test.report.Planned) {
			t.Errorf("%+v is OK: %v", test.report, test.report.OK())
		}
	}
}

// The page says of the whole what the table says.
func TestPageHasTheVerdicts(t *testing.T) {
	for _, r := range []Report{
		{SyncMS: 4, Planned: 5}, {Planned: 2, Results: []Result{{Strategy: "by-stock"}}, Surprises: []string{"by-stock on mariadb broke: [oversold]"}},
	} {
		var table, page strings.Builder
		if err := errors.Join(r.Table(&table), r.HTML(&page)); err != nil {
			t.Fatal(err)
		}
		for _, line := range r.verdicts() {
			if !strings.Contains(table.String(), line) || !strings.Contains(page.String(), `<p class="alarm">`+line+"</p>") {
				t.Errorf("%q is not in\n%s\nor not in\n%s", line, table.String(), page.String())
			}
		}
		if len(r.verdicts()) != 2 {
			t.Errorf("%q", r.verdicts())
		}
	}
}

// A bar is as long as its value says, and ways in the process stand apart from servers.
func TestChartsAreLinear(t *testing.T) {
	r := Report{Results: []Result{
		{Strategy: "by-stock", Database: "mariadb", AnswersPerSecond: 2_986}, {Strategy: "dibs-redis-durable", Database: "mariadb", AnswersPerSecond: 5_972},
		{Strategy: "dibs-embedded", AnswersPerSecond: 547_364, InProcess: true},
	}}
	var rates, inside *chart
	charts := r.charts()
	for i := range charts {
		switch charts[i].Title {
		case "Answers per second":
			rates = &charts[i]
		case inProcess:
			inside = &charts[i]
		}
	}
	if rates == nil || inside == nil || len(rates.Bars) != 2 || len(inside.Bars) != 1 {
		t.Fatalf("%+v", charts)
	}
	if a, b := rates.Bars[0].Percent, rates.Bars[1].Percent; a != 35 || b != 70 {
		t.Errorf("twice as much is %v and %v", a, b)
	}
	// On the plane, whose scales are logarithmic, they would seem to be near.
	if dots := r.dots(); len(dots) != 2 {
		t.Errorf("%+v", dots)
	}
	var page strings.Builder
	if err := r.HTML(&page); err != nil || strings.Count(page.String(), "<circle") != 2 || strings.Count(page.String(), ", logarithmic</text>") != 2 {
		t.Errorf("%v: %s", err, page.String())
	}
}
