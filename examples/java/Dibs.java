import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * A client of dibs in Java 17, with nothing but the JDK. It claims a pair of sneakers as user 42,
 * pays it, and waits until a webhook tells that it was paid.
 *
 * <pre>
 *   dibs dev --webhook-allow-private
 *   export DIBS_URL=http://127.0.0.1:8080 DIBS_ADMIN_KEY=…
 *   java examples/java/Dibs.java
 * </pre>
 */
public class Dibs {
    /** How often a call without an answer is sent again. Each time it is the same call. */
    public static final int ATTEMPTS = 6;

    private final HttpClient http = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(3)).build();
    private final String url;
    private final String adminKey;

    public Dibs(String url, String adminKey) {
        this.url = url;
        this.adminKey = adminKey;
    }

    /** A refusal: sold_out, limit_reached … The same request would be refused again. */
    public static class Refused extends Exception {
        private static final long serialVersionUID = 1;
        public final String reason;

        public Refused(String reason, String body) {
            super(body);
            this.reason = reason;
        }
    }

    /**
     * Claims for a user. The key is made once for each press of the button and sent again with
     * every attempt: dibs then answers with the same claim, also when the answer got lost.
     */
    public String claim(String campaign, String userToken, String key) throws Exception {
        return post("/v1/campaigns/" + campaign + "/claims", "{}", userToken, key);
    }

    /**
     * Tells dibs that the payment arrived: exactly what the claim costs. A repeat with the same
     * reference changes nothing.
     */
    public String confirm(String claim, String paymentRef) throws Exception {
        var amount = Pattern.compile("\"amount\":(\\{[^}]*\\})").matcher(claim);
        if (!amount.find()) {
            throw new IllegalArgumentException("the claim costs nothing: " + claim);
        }
        return post("/v1/claims/" + field(claim, "id") + "/confirm",
            "{\"amount\":" + amount.group(1) + ",\"payment_ref\":\"" + paymentRef + "\"}", adminKey, null);
    }

    /** Registers a webhook. The answer has its secret, which is shown only now. */
    public String hook(String address) throws Exception {
        return post("/v1/webhook-endpoints", "{\"url\":\"" + address + "\"}", adminKey, UUID.randomUUID().toString());
    }

    /** Posts until there is an answer that is final. 429 and 503 say that the same call may succeed later. */
    private String post(String path, String body, String token, String key) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url + path)).timeout(Duration.ofSeconds(5))
            .header("Authorization", "Bearer " + token).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body));
        if (key != null) {
            request.header("Idempotency-Key", key);
        }
        for (int attempt = 1; ; attempt++) {
            long pause = 100L << attempt;
            try {
                var answer = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
                if (answer.statusCode() < 300) {
                    return answer.body();
                }
                if (answer.statusCode() != 429 && answer.statusCode() != 503 || attempt == ATTEMPTS) {
                    throw new Refused(field(answer.body(), "reason"), answer.body());
                }
                pause = answer.headers().firstValue("Retry-After").map(s -> Long.parseLong(s) * 1000).orElse(pause);
            } catch (IOException lost) {
                if (attempt == ATTEMPTS) {
                    throw lost;
                }
                System.out.println("no answer: again, with the same key");
            }
            // A random part keeps many clients from coming back together.
            Thread.sleep(pause / 2 + (long) (Math.random() * pause));
        }
    }

    /** Checks a webhook by the scheme of Standard Webhooks: who sent it, and that it is not old. */
    public static boolean genuine(String id, String timestamp, String signatures, byte[] body, String secret) throws Exception {
        if (id == null || timestamp == null || signatures == null
            || Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > 300) {
            return false;
        }
        var mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(Base64.getDecoder().decode(secret.substring("whsec_".length())), "HmacSHA256"));
        mac.update((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
        byte[] want = ("v1," + Base64.getEncoder().encodeToString(mac.doFinal(body))).getBytes(StandardCharsets.UTF_8);
        for (String signature : signatures.split(" ")) {
            if (MessageDigest.isEqual(want, signature.getBytes(StandardCharsets.UTF_8))) {
                return true;
            }
        }
        return false;
    }

    /** Reads a text of a JSON object, the first of that name. A real client has a JSON library. */
    public static String field(String json, String name) {
        var found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
        return found.find() ? found.group(1) : "";
    }

    public static void main(String[] args) throws Exception {
        var dibs = new Dibs(System.getenv("DIBS_URL"), System.getenv("DIBS_ADMIN_KEY"));
        var secret = new CompletableFuture<String>();
        var paid = new CompletableFuture<String>();
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/hook", exchange -> {
            int status = 401;
            try (exchange) {
                byte[] body = exchange.getRequestBody().readAllBytes();
                var h = exchange.getRequestHeaders();
                if (genuine(h.getFirst("webhook-id"), h.getFirst("webhook-timestamp"), h.getFirst("webhook-signature"),
                    body, secret.get(5, TimeUnit.SECONDS))) {
                    status = 204;
                    String event = new String(body, StandardCharsets.UTF_8);
                    if (field(event, "type").equals("dev.dibs.claim.confirmed")) {
                        // Events may come twice: a real shop remembers webhook-id.
                        paid.complete(field(event, "subject"));
                    }
                }
                exchange.sendResponseHeaders(status, -1);
            } catch (Exception e) {
                throw new IOException(e);
            }
        });
        server.start();
        secret.complete(field(dibs.hook("http://127.0.0.1:" + server.getAddress().getPort() + "/hook"), "secret"));

        String press = UUID.randomUUID().toString();
        String claim = dibs.claim("sneaker-drop", "dev_42", press);
        System.out.println("granted " + field(claim, "id"));
        try {
            dibs.claim("ticket-tomorrow", "dev_42", UUID.randomUUID().toString());
        } catch (Refused e) {
            System.out.println("tickets: " + e.reason);
        }
        dibs.confirm(claim, "pay-" + press);
        System.out.println("paid " + paid.get(30, TimeUnit.SECONDS));
        server.stop(0);
    }
}
