// Package format is how the engine writes what Redis holds: the names of keys, the
// bytes of users, claims, places and items in them, the elements of the journal, and
// the arguments of scripts. The scripts in folder lua of package conn write and read
// the same; a change of either needs the other, and a new number in meta's field
// format. Nothing here asks Redis.
package format
