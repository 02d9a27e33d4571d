package tidy

import (
	"testing"
)

// TestLinks finds faults of the links between documents.
func TestLinks(t *testing.T) {
	find(t, []violation{
		{"no README", file("README.md", gone), []string{
			"README.md:1: there is no README.md", "README.zh-CN.md:3: the link to ./README.md leads nowhere: there is no such file", "docs/FLOW.md:5: the link to ../README.md leads nowhere",
		}},
		{"no Chinese README", map[string]string{"README.zh-CN.md": gone, "README.md": "x\n", "docs/FLOW.md": "x\n"}, []string{"README.md:1: does not link to README.zh-CN.md", "README.zh-CN.md:1: there is no"}},
		{"README without the other language", file("README.zh-CN.md", "## 开始\n\n[流程](docs/FLOW.md)\n"), []string{"README.zh-CN.md:1: does not link to README.md"}},
		{"dead links", file("docs/A.md", "[a](gone.md) ![b](img/gone.png \"b\")\n[c]: gone.txt\n<a href=\"gone/\">d</a>\n"), []string{
			"docs/A.md:1: the link to gone.md leads nowhere", "docs/A.md:1: the link to img/gone.png leads nowhere",
			"docs/A.md:2: the link to gone.txt leads nowhere", "docs/A.md:3: the link to gone/ leads nowhere",
		}},
		{"dead anchors", file("docs/A.md", "[a](FLOW.md#flown) [b](#b) [c](/README.zh-CN.md#结束)\n"), []string{
			"docs/A.md:1: the link to #b leads nowhere: no heading", "docs/A.md:1: the link to /README.zh-CN.md#结束 leads nowhere: no heading",
			"docs/A.md:1: the link to FLOW.md#flown leads nowhere: no heading",
		}},
		{"link out of the repository", file("docs/A.md", "[a](../../b.md)\n"), []string{"docs/A.md:1: the link to ../../b.md leads nowhere: it leaves"}},
		{"line numbers below a code block", file("docs/A.md", "~~~\n[x](x)\n```\n~~~\n[a](b.md)\n"), []string{"docs/A.md:5: the link to b.md"}},
	})
}
