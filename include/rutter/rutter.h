#pragma once
/// \file rutter.h
/// All of Rutter's public interface.
#include <rutter/runtime.h>
#include <rutter/types.h>
#if __has_include(<rutter/builder.h>)
#include <rutter/builder.h>
#include <rutter/tuner.h>
#endif
