// Objects to a shared object by lld in this process, one thread, all files in memory; and back to text for people.
#include <lld/Common/Driver.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/error.h"
#include "base/private_folder.h"
#include "cpu/emitter.h"

LLD_HAS_DRIVER(elf)

namespace rutter::cpu {
namespace {
class MemFile {
 public:
  explicit MemFile(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {
    if (fd_ < 0) throw DeviceError("no memory file for linking: {}", std::strerror(errno));
  }
  ~MemFile() { close(fd_); }
  MemFile(const MemFile&) = delete;
  MemFile& operator=(const MemFile&) = delete;
  void write(std::string_view s) {
    while (!s.empty()) {
      ssize_t n = ::write(fd_, s.data(), s.size());
      if (n <= 0) throw DeviceError("writing a memory file for linking failed: {}", std::strerror(errno));
      s.remove_prefix(size_t(n));
    }
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};
// The output needs a directory: lld writes beside it and renames. In memory where there is such a file system.
std::string linkParent() {
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}
}  // namespace

std::string linkObjects(const std::vector<std::string_view>& objects) {
  static std::mutex one;  // lld keeps its state in globals
  std::lock_guard lock(one);
  PrivateFolder dir(linkParent(), "rutter-link-");
  std::string out = dir.path() + "/kernels.so";
  std::vector<std::unique_ptr<MemFile>> files;
  // One hash style and no build id: the bytes depend on the objects alone.
  std::vector<std::string> args = {
      "ld.lld", "-shared",         "-o", out,    "--hash-style=gnu", "--build-id=none",
      "-z",     "noseparate-code", "-z", "defs", "--threads=1",      "--strip-all",
  };
  for (std::string_view o : objects) {
    files.push_back(std::make_unique<MemFile>("rutter-o"));
    files.back()->write(o);
    args.push_back(files.back()->path());
  }
  std::vector<const char*> argv;
  for (const std::string& a : args) argv.push_back(a.c_str());
  std::string text;
  llvm::raw_string_ostream os(text);
  auto r = lld::lldMain(argv, os, os, {{lld::Gnu, &lld::elf::link}});
  RUTTER_CHECK(r.retCode == 0 && r.canRunAgain, "linking {} kernels failed: {}", objects.size(), text);
  std::ifstream file(out, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file.good() && !file.eof()) throw DeviceError("the linked kernels in {} cannot be read", out);
  return bytes;
}

std::string disassembleObject(const std::string& object) {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernel"));
  RUTTER_CHECK(bool(file), "unreadable object: {}", llvm::toString(file.takeError()));
  std::string triple = "x86_64-unknown-linux-gnu", err;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(triple, err);
  RUTTER_CHECK(t, "LLVM has no x86-64: {}", err);
  std::unique_ptr<llvm::MCRegisterInfo> regs(t->createMCRegInfo(triple));
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCAsmInfo> info(t->createMCAsmInfo(*regs, triple, options));
  std::unique_ptr<llvm::MCSubtargetInfo> sub(t->createMCSubtargetInfo(triple, "sapphirerapids", ""));
  std::unique_ptr<llvm::MCInstrInfo> instrs(t->createMCInstrInfo());
  llvm::MCContext ctx(llvm::Triple(triple), info.get(), regs.get(), sub.get());
  std::unique_ptr<llvm::MCDisassembler> dis(t->createMCDisassembler(*sub, ctx));
  std::unique_ptr<llvm::MCInstPrinter> printer(t->createMCInstPrinter(llvm::Triple(triple), 0, *info, *instrs, *regs));
  printer->setPrintBranchImmAsAddress(true);
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const llvm::object::SectionRef& s : (*file)->sections()) {
    if (!s.isText() || s.getSize() == 0) continue;
    auto bytes = s.getContents();
    if (!bytes) continue;
    std::map<uint64_t, std::string> labels;
    for (const llvm::object::SymbolRef& sym : (*file)->symbols()) {
      auto type = sym.getType();
      auto address = sym.getAddress();
      auto name = sym.getName();
      if (type && address && name && *type == llvm::object::SymbolRef::ST_Function) labels[*address] = name->str();
    }
    llvm::ArrayRef<uint8_t> code(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size());
    for (uint64_t at = 0; at < code.size();) {
      if (auto it = labels.find(at); it != labels.end()) os << it->second << ":\n";
      llvm::MCInst inst;
      uint64_t size = 1;
      if (dis->getInstruction(inst, size, code.slice(at), at, llvm::nulls()) == llvm::MCDisassembler::Success) {
        os << llvm::format("%6llx:", static_cast<unsigned long long>(at));
        printer->printInst(&inst, at, "", *sub, os);
        os << "\n";
      } else {
        os << llvm::format("%6llx:\t(bad)\n", static_cast<unsigned long long>(at));
        size = std::max<uint64_t>(size, 1);
      }
      at += size;
    }
  }
  return text;
}

}  // namespace rutter::cpu
