package lab

import (
	"strings"
	"testing"
)

// TestLabels writes names where there is room: never over one another, over a
// dot or beyond the plane, and each once.
func TestLabels(t *testing.T) {
	var r Report
	for i := range 60 {
		r.Results = append(r.Results, Result{Strategy: strings.Repeat("x", 4+i%20), AnswersPerSecond: float64(1000 + 40*i), P99MS: float64(5 + i%7)})
	}
	dots := r.dots()
	var boxes []box
	seen := map[string]bool{}
	for _, d := range dots {
		boxes = append(boxes, box{d.X - dotRadius, d.Y - dotRadius, d.X + dotRadius, d.Y + dotRadius})
	}
	for _, d := range dots {
		if d.Label == "" {
			continue
		}
		width := float64(len(d.Label)) * letterWidth
		b := box{d.LX, d.LY - 3 - labelHeight/2, d.LX + width, d.LY - 3 + labelHeight/2}
		if d.Anchor == "end" {
			b.left, b.right = b.left-width, b.left
		}
		for _, o := range boxes {
			if b.meets(o) {
				t.Errorf("the name %s is written over something", d.Label)
			}
		}
		if seen[d.Label] || b.left < planeLeft-dotRadius || b.right > planeRight+dotRadius {
			t.Errorf("the name %s is written twice, or outside", d.Label)
		}
		boxes, seen[d.Label] = append(boxes, b), true
	}
	if len(seen) == 0 {
		t.Error("nothing has a name")
	}
}
