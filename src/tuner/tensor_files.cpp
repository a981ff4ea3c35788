#include "tuner/tensor_files.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "base/text.h"
#include "onnx/file.h"
#include "onnx/tensors.h"

namespace rutter::tuner {
namespace {

static_assert(std::endian::native == std::endian::little, "files hold little-endian data");

// NumPy's type strings without the byte order; bfloat16 has none of its own and is written as two raw bytes.
struct NpyType {
  ir::DType dtype;
  std::string_view code;
};
constexpr NpyType kNpyTypes[] = {
    {ir::DType::kF32, "f4"},  {ir::DType::kF64, "f8"}, {ir::DType::kF16, "f2"}, {ir::DType::kBF16, "V2"},
    {ir::DType::kBool, "b1"}, {ir::DType::kI8, "i1"},  {ir::DType::kI16, "i2"}, {ir::DType::kI32, "i4"},
    {ir::DType::kI64, "i8"},  {ir::DType::kU8, "u1"},  {ir::DType::kU16, "u2"}, {ir::DType::kU32, "u4"},
    {ir::DType::kU64, "u8"},
};

struct NpyHeader {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
  size_t dataOffset = 0;
};

// The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }
class NpyReader {
 public:
  explicit NpyReader(std::string_view file) : file_(file) {}
  std::optional<NpyHeader> read() {
    if (file_.size() < 10 || file_.substr(0, 6) != std::string_view("\x93NUMPY", 6)) return std::nullopt;
    const auto major = static_cast<unsigned char>(file_[6]);
    const size_t lengthBytes = major == 1 ? 2 : 4;
    if (major < 1 || major > 3 || file_.size() < 8 + lengthBytes) return std::nullopt;
    size_t length = 0;
    std::memcpy(&length, file_.data() + 8, lengthBytes);
    if (length > file_.size() - 8 - lengthBytes) return std::nullopt;
    text_ = file_.substr(8 + lengthBytes, length);
    NpyHeader h;
    h.dataOffset = 8 + lengthBytes + length;
    auto descr = after("'descr':");
    if (!descr || !descr->starts_with('\'')) return std::nullopt;
    auto end = descr->find('\'', 1);
    if (end == descr->npos) return std::nullopt;
    h.descr = descr->substr(1, end - 1);
    auto order = after("'fortran_order':");
    if (!order || !(order->starts_with("True") || order->starts_with("False"))) return std::nullopt;
    h.fortran = order->starts_with("True");
    auto shape = after("'shape':");
    if (!shape || !shape->starts_with('(')) return std::nullopt;
    shape->remove_prefix(1);
    while (true) {
      while (!shape->empty() && (shape->front() == ' ' || shape->front() == ',')) shape->remove_prefix(1);
      if (shape->starts_with(')')) return h;
      int64_t v = 0;
      auto [p, error] = std::from_chars(shape->data(), shape->data() + shape->size(), v);
      if (error != std::errc() || v < 0 || h.shape.size() > 32) return std::nullopt;
      shape->remove_prefix(static_cast<size_t>(p - shape->data()));
      h.shape.push_back(v);
    }
  }

 private:
  std::optional<std::string_view> after(std::string_view key) const {
    auto at = text_.find(key);
    if (at == text_.npos) return std::nullopt;
    auto rest = text_.substr(at + key.size());
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    return rest;
  }
  std::string_view file_, text_;
};

// What is wanted, checked against what the file says.
class Checker {
 public:
  Checker(const std::string& path, const WantedTensor& w) : path_(path), wanted_(w) {}

  template <typename... A>
  [[noreturn]] void fail(fmt::format_string<A...> f, A&&... a) const {
    throw UserError("tensor '{}', file {}: {}", wanted_.name, frontend::shown(path_),
                    fmt::format(f, std::forward<A>(a)...));
  }
  void shape(const std::vector<int64_t>& has) const {
    if (wanted_.dims && *wanted_.dims != has)
      fail("its shape is {}, but {} is wanted", printDims(has), printDims(*wanted_.dims));
  }
  void size(int64_t has, const std::vector<int64_t>& dims) const {
    const int64_t want = ir::bytesOf(wanted_.dtype, ir::elementCount(dims));
    if (has != want)
      fail("it holds {} bytes, but {} of shape {} take {}", has, ir::dtypeName(wanted_.dtype), printDims(dims), want);
  }

 private:
  const std::string& path_;
  const WantedTensor& wanted_;
};

ir::Tensor fromNpy(const std::shared_ptr<const frontend::MappedFile>& file, const WantedTensor& w,
                   const Checker& check) {
  auto h = NpyReader(file->bytes()).read();
  if (!h) check.fail("it is not a .npy file, or a damaged one");
  std::string_view code = h->descr;
  const char order = code.empty() ? ' ' : code.front();
  if (order == '<' || order == '|' || order == '=' || order == '>') code.remove_prefix(1);
  const NpyType* type = nullptr;
  for (const auto& t : kNpyTypes)
    if (t.dtype == w.dtype) type = &t;
  if (!type) check.fail("NumPy has no type for {}; give raw data", ir::dtypeName(w.dtype));
  if (code != type->code || (order == '>' && ir::bitsOf(w.dtype) > 8))
    check.fail("its type is '{}', but {} ('<{}') is wanted", frontend::shown(h->descr), ir::dtypeName(w.dtype),
               type->code);
  check.shape(h->shape);
  if (h->fortran && h->shape.size() > 1) check.fail("it is in Fortran order; save numpy.ascontiguousarray of it");
  auto data = file->bytes().substr(h->dataOffset);
  check.size(static_cast<int64_t>(data.size()), h->shape);
  return ir::Tensor(w.dtype, h->shape, data.data(), file);
}

ir::Tensor fromProto(const std::shared_ptr<const frontend::MappedFile>& file, const std::string& path,
                     const WantedTensor& w, const Checker& check) {
  auto view = frontend::parseTensorProto(file->bytes());
  frontend::TensorStore store(file, "");
  auto t = store.decode(view, fmt::format("tensor '{}', file {}", w.name, frontend::shown(path)));
  if (t.dtype() != w.dtype)
    check.fail("its type is {}, but {} is wanted", ir::dtypeName(t.dtype()), ir::dtypeName(w.dtype));
  check.shape(t.shape());
  return t;
}

}  // namespace

ir::Tensor readTensorFile(const std::string& path, const WantedTensor& w) {
  const Checker check(path, w);
  std::shared_ptr<const frontend::MappedFile> file;
  try {
    file = frontend::MappedFile::open(path);
  } catch (const UserError& e) {
    throw UserError("tensor '{}': {}", w.name, e.what());
  }
  if (w.dtype == ir::DType::kString && !path.ends_with(".pb")) check.fail("strings are read from .pb files only");
  try {
    if (path.ends_with(".npy")) return fromNpy(file, w, check);
    if (path.ends_with(".pb")) return fromProto(file, path, w, check);
  } catch (const UserError& e) {
    if (std::string_view(e.what()).starts_with("tensor '")) throw;
    check.fail("{}", e.what());
  }
  if (!w.dims) check.fail("raw data has no shape; give the shape of '{}'", w.name);
  check.size(static_cast<int64_t>(file->bytes().size()), *w.dims);
  return ir::Tensor(w.dtype, *w.dims, file->bytes().data(), file);
}

std::string npyBytes(const ir::Tensor& t) {
  const NpyType* type = nullptr;
  for (const auto& k : kNpyTypes)
    if (k.dtype == t.dtype()) type = &k;
  if (!type) throw UserError("NumPy has no type for {}", ir::dtypeName(t.dtype()));
  std::string shape;
  for (auto d : t.shape()) shape += fmt::format("{},", d);
  auto dict = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                          ir::bitsOf(t.dtype()) > 8 ? '<' : '|', type->code, shape);
  // The data begins at a multiple of 64; the header ends with a newline.
  while ((10 + dict.size() + 1) % 64) dict += ' ';
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  const auto length = static_cast<uint16_t>(dict.size());
  out.append(reinterpret_cast<const char*>(&length), 2);
  out += dict;
  if (t.bytes()) out.append(static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes()));
  return out;
}

}  // namespace rutter::tuner
