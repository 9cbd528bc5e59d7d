package ical

// Windows exports windows to the tests.
var Windows = windows
