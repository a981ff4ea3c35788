#pragma once
/// In front of a function whose loops are worth vectorising: GCC does so at -O3 only. Clang does at -O2, and warns of
/// the attribute, which it does not know.
#if defined(__GNUC__) && !defined(__clang__)
#define RUTTER_VECTORISED __attribute__((optimize("O3")))
#else
#define RUTTER_VECTORISED
#endif
