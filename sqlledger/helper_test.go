package sqlledger_test

func helper() bool { return false }
