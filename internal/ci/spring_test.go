package ci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// springStubs has what the blocks of examples/spring.md use of Spring, of Jackson and of
// the shop, as small as javac accepts. %BLOCKS% is where the blocks stand.
const springStubs = `package shop;

import java.io.IOException;
import shop.sales.Dibs;

@interface PostMapping { String value(); }
@interface AuthenticationPrincipal {}
@interface RequestHeader { String value() default ""; }
@interface RequestBody {}
enum HttpStatus { CONFLICT, UNAUTHORIZED }
interface HttpHeaders { String getFirst(String name); }
interface Jwt { String getTokenValue(); }
interface JsonNode { JsonNode get(String name); String asText(); }
interface ObjectMapper { JsonNode readTree(byte[] body) throws IOException; }
abstract class ResponseEntity<T> {
    interface Builder { <B> ResponseEntity<B> body(B body); <B> ResponseEntity<B> build(); }
    static <B> ResponseEntity<B> ok(B body) { return null; }
    static Builder status(HttpStatus status) { return null; }
    static Builder noContent() { return null; }
}
interface Order { String claimAsAnswered(); }
interface Payment { Order order(); String reference(); }
interface Orders { void insertIfAbsent(String id, JsonNode claim); void paid(Order order); }
interface Refunds { void start(Payment payment); }
class Shop {
    Dibs dibs = new Dibs("http://127.0.0.1:8080", "key");
    String secret;
    ObjectMapper json;
    Orders orders;
    Refunds refunds;
%BLOCKS%
}
`

// TestSpringCompiles puts the Java of examples/spring.md into a class of a shop, with
// Dibs.java in a package of its own beside it, as a shop would have it, and compiles both.
func TestSpringCompiles(t *testing.T) {
	page, err := os.ReadFile("../../examples/spring.md")
	if err != nil {
		t.Fatal(err)
	}
	found := blocks(string(page), "java")
	if len(found) < 3 {
		t.Fatalf("the page has %d blocks of Java", len(found))
	}
	client, err := os.ReadFile("../../examples/java/Dibs.java")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sources := map[string]string{
		"Dibs.java": "package shop.sales;\n" + string(client),
		"Shop.java": strings.Replace(springStubs, "%BLOCKS%", strings.Join(found, "\n"), 1),
	}
	command := []string{"-encoding", "UTF-8", "-proc:none", "-d", filepath.Join(dir, "out")}
	for name, text := range sources {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		command = append(command, path)
	}
	if said, err := exec.CommandContext(t.Context(), "javac", command...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
