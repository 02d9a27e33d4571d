package idgen_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/servers"
)

// Ids from the time and a daily count in Redis, which a process takes in blocks
// of 1,000; and the count of the day.
func ExampleNewDaily() {
	ctx := context.Background()
	counter, err := idgen.OpenRedisCounter(theRedis.URL(), "example:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer counter.Close()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ids, err := idgen.NewDaily(counter, "orders", 1000, func() time.Time { return noon })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ids.Close()
	for range 2 {
		id, err := ids.Next(ctx)
		at, count := idgen.DailyTime(id)
		fmt.Println(id, at.Format(time.TimeOnly), count, err)
	}
	fmt.Println(ids.Count(ctx, noon))
	// Output:
	// 662572578845491201 12:00:00 1 <nil>
	// 662572578845491202 12:00:00 2 <nil>
	// 1000 <nil>
}

// Workers are leased: no process needs a number of its own.
func ExampleOpenSnowflake() {
	ids, err := idgen.OpenSnowflake(context.Background(), theRedis.URL(), "example:", time.Minute, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ids.Close()
	a, err := ids.Next()
	fmt.Println(err)
	b, err := ids.Next()
	fmt.Println(b > a, err)
	// Output:
	// <nil>
	// true <nil>
}

// A sequence of blocks.
func ExampleNewSequence() {
	counter, err := idgen.OpenRedisCounter(theRedis.URL(), "example:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer counter.Close()
	s, err := idgen.NewSequence(counter, "invoices", 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Next(context.Background()))
	// Output: 1 <nil>
}

// A sequence of a database, one number at a time: it has no gaps, and each costs
// a round trip.
func ExampleNewSQLCounter() {
	ctx := context.Background()
	server, err := servers.Postgres()
	if err != nil {
		fmt.Println(err)
		return
	}
	_, name, done, err := server.Database()
	if err != nil {
		fmt.Println(err)
		return
	}
	db, err := server.Open(name)
	if err != nil {
		fmt.Println(err)
		return
	}
	counter, err := idgen.NewSQLCounter(ctx, db, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := idgen.NewSequence(counter, "invoices", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Next(ctx))
	fmt.Println(s.Next(ctx))
	fmt.Println(errors.Join(db.Close(), done()))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// <nil>
}

// A number that everybody may see tells nothing about how many there are when it
// goes through a keyed permutation, and comes back by the same key.
func ExampleFeistel_Seal() {
	perm, err := idgen.NewFeistel([]byte("a key of 16 byte"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var in [10]byte
	binary.BigEndian.PutUint64(in[2:], 662572578845491201)
	out := perm.Seal(in)
	fmt.Println(perm.Open(out) == in, out != in)
	// Output: true true
}

// A UUID asks nobody.
func ExampleUUID() {
	id, err := idgen.UUID()
	fmt.Println(len(id), err)
	// Output: 36 <nil>
}
