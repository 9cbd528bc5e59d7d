package ical

// Windows is the table, for tests.
var Windows = windows
