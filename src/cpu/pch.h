#pragma once
#include "base/pch.h"
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
