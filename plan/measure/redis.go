package measure

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// connectRedis connects to an engine's Redis.
func connectRedis(engine string) (rueidis.Client, error) {
	opt, err := rueidis.ParseURL(engine)
	if err != nil {
		return nil, fmt.Errorf("the address of Redis: %w", err)
	}
	opt.DisableCache = true
	client, err := rueidis.NewClient(opt)
	if err != nil {
		return nil, fmt.Errorf("connecting to Redis: %w", err)
	}
	return client, nil
}

// redisCPU is the processor time that a Redis has used so far, in seconds. Its main
// thread decides; where Redis does not tell that thread's, all of them count.
func redisCPU(ctx context.Context, client rueidis.Client) (float64, error) {
	text, err := client.Do(ctx, client.B().Info().Section("cpu").Build()).ToString()
	if err != nil {
		return 0, fmt.Errorf("asking Redis for its processor time: %w", err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		var v float64
		if _, err := fmt.Sscan(value, &v); err == nil {
			values[name] = v
		}
	}
	if main := values["used_cpu_sys_main_thread"] + values["used_cpu_user_main_thread"]; main > 0 {
		return main, nil
	}
	return values["used_cpu_sys"] + values["used_cpu_user"], nil
}
