package sqlledger

import ("testing";"fmt";"github.com/dibs-dev/dibs";"context";"time";"math/rand/v2";"strconv";"os";"syscall")

func TestZZ(t *testing.T){
	ctx:=context.Background()
	for _,tu:=range []tuning{
		{4096,64<<10,16384},{4096,64<<10,4096},{4096,64<<10,32768},{4096,128<<10,16384},{2048,64<<10,32768},
	}{
		ledgerTuning=tu
		dir,_:=os.MkdirTemp("","zz")
		l,err:=OpenSQLite(ctx,dir+"/l.db",Options{Migrate:true})
		if err!=nil{t.Fatal(err)}
		c:=&dibs.Campaign{ID:"b",LimitPerUser:1,Shards:1,Version:1,Stock:dibs.Stock{Kind:dibs.Units,Total:1e9}}
		if err:=l.InsertCampaign(ctx,c,nil);err!=nil{t.Fatal(err)}
		sh:=dibs.ShardID{Campaign:c.Number}
		l.LoadShard(ctx,c,sh)
		last:=dibs.Cursor{Epoch:1,Seq:1}
		l.Settle(ctx,[]dibs.Batch{{Campaign:c,Shard:sh,To:last,Entries:[]dibs.Entry{{Cursor:last,Kind:dibs.EntryOpen}}}})
		r:=rand.New(rand.NewPCG(1,2))
		var el,half time.Duration
		n:=0; cpu:=func() float64 { var u syscall.Rusage; syscall.Getrusage(0,&u); return float64(u.Utime.Sec+u.Stime.Sec)+float64(u.Utime.Usec+u.Stime.Usec)/1e6 }; c0:=cpu()
		for n<1000000 {
			es:=make([]dibs.Entry,4096); from:=last
			for i:=range es { last.Seq++; es[i]=dibs.Entry{Cursor:last,Kind:dibs.EntryGrant,At:1796097600000+int64(last.Seq),Quantity:1,UserID:"u"+strconv.Itoa(1000000+r.IntN(9000000)),Key:r.Uint64()} }
			t0:=time.Now()
			if err:=l.Settle(ctx,[]dibs.Batch{{Campaign:c,Shard:sh,From:from,To:last,Entries:es}});err!=nil{t.Fatal(err)}
			d:=time.Since(t0); el+=d; n+=4096
			if n>500000 {half+=d}
		}
		st,_:=os.Stat(dir+"/l.db"); wl,_:=os.Stat(dir+"/l.db-wal")
		fmt.Printf("cpu %.1f us/claim %+v %.0f/s second half %.0f/s db %dMB wal %dMB\n",(cpu()-c0)*1e6/float64(n),tu,float64(n)/el.Seconds(),500000/half.Seconds(),st.Size()>>20,wl.Size()>>20)
		l.Close(); os.RemoveAll(dir)
	}
}
