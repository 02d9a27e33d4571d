// Package redpacket divides a sum of money into the shares of a red packet.
//
// # Basics
//
// [Split] takes a [dibs.RedPacketSpec] (total, count, split, bounds) and returns
// the shares in minor units, in the order in which they will be given out. They
// sum to the total exactly, each is within the bounds, and they are shuffled,
// so that it makes no difference who comes first. [Measure] divides many times
// and shows that, place by place.
//
// # Splits
//
// Let m be the mean share and e = m - min what it has above the least.
//
// [dibs.DoubleMean] gives one share after the other, each drawn evenly from the
// widest interval that has the mean of what is left in its middle and stays
// within the bounds: without a max from min to 2m - min, which is the known rule
// "between the least and twice the mean". With a max below that, the interval is
// from 2m - max to max: shares draw closer together instead of piling up at the
// max. The standard deviation is near e/√3 = 0.58 e (a little more for few
// shares, 0.65 e for ten), or (max - m)/√3 near such a max.
//
// [dibs.LineCut] cuts the total at random points, like a line. Each way to cut
// it into shares within the bounds is as likely as any other, which makes for a
// few great shares and many small ones: the standard deviation is near e, one
// share in twenty is above three times the mean, and the greatest of n shares is
// near m·ln n. A max bends the whole distribution and puts no lump on the bound.
//
// [dibs.Equal] gives everybody the same; what cannot be divided is handed out
// one minor unit each, to shares picked at random.
//
// # Caveats
//
// The shares of [dibs.Equal] can be guessed by everybody, and the last share of
// any red packet by whoever knows all the others. Beyond that the shares known
// so far tell what the rest sums to, and never which share comes next: the
// numbers come from a cryptographic generator with a new 256-bit seed for each
// division. Keep the shares on the server until they are given out.
package redpacket
