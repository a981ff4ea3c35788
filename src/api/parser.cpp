#include <algorithm>
#include <filesystem>

#include "api/objects.h"
#include "onnx/import.h"
#include "ops/op.h"

namespace rutter::api {
namespace {

// A place in the parser's own source.
struct Place {
  const char* func;
  int32_t line;
};

class ParserError final : public onnx::IParserError {
 public:
  ParserError(const Place& at, ErrorCode code, std::string desc, int32_t node = -1, std::string name = "",
              std::string op = "")
      : at_(at), code_(code), desc_(std::move(desc)), node_(node), name_(std::move(name)), op_(std::move(op)) {}
  ErrorCode code() const noexcept override { return code_; }
  char const* desc() const noexcept override { return desc_.c_str(); }
  int32_t node() const noexcept override { return node_; }
  char const* nodeName() const noexcept override { return name_.c_str(); }
  char const* nodeOperator() const noexcept override { return op_.c_str(); }
  char const* file() const noexcept override {  // from the project's root on
    constexpr std::string_view kPath = __FILE__;
    constexpr size_t kRoot = kPath.rfind("src/");
    return kPath.data() + (kRoot == kPath.npos ? 0 : kRoot);
  }
  int32_t line() const noexcept override { return at_.line; }
  char const* func() const noexcept override { return at_.func; }

 private:
  Place at_;
  ErrorCode code_;
  std::string desc_;
  int32_t node_;
  std::string name_, op_;
};

class Parser final : public onnx::IParser {
 public:
  Parser(Network& network, ILogger* logger) : network_(network), reporter_(logger, network.getErrorRecorder()) {}
  bool parse(void const* data, std::size_t size, char const* path) noexcept override {
    return attempt([&] {
      if (!data) throw UserError("the model's address is null");
      Network::Source source{"", std::make_shared<const std::string>(static_cast<const char*>(data), size),
                             directoryOf(path)};
      // The copy that the graph keeps is also what a tuner's processes read.
      frontend::Model model = import(source.bytes->data(), size, path, source.bytes);
      describe(model);
      network_.take(std::move(model), std::move(source));
    });
  }
  bool parseFromFile(char const* path, int32_t verbosity) noexcept override {
    return attempt([&] {
      if (!path) throw UserError("the model's path is null");
      LogScope upTo([&](Severity s, const std::string& text) {
        if (int32_t(s) <= verbosity) reporter_.logger()->log(static_cast<ILogger::Severity>(s), text.c_str());
      });
      frontend::Model model = frontend::importFile(path);
      describe(model);
      network_.take(std::move(model), {std::filesystem::absolute(path).string(), nullptr, ""});
    });
  }
  bool supportsModelV2(void const* data, std::size_t size, char const* path) noexcept override {
    subgraphs_.clear();
    return attempt([&] {
      std::exception_ptr unsupported;
      try {
        import(data, size, path);
      } catch (const frontend::UnsupportedOperators&) {
        unsupported = std::current_exception();
      }
      subgraphs_ = frontend::nodesBySupport({static_cast<const std::byte*>(data), size});
      if (unsupported) std::rethrow_exception(unsupported);
    });
  }
  bool supportsOperator(char const* name) const noexcept override {
    return reporter_.guard(false, [&] { return name && ops::findOp("", name); });
  }
  int32_t getNbErrors() const noexcept override { return int32_t(errors_.size()); }
  onnx::IParserError const* getError(int32_t i) const noexcept override {
    return i >= 0 && i < getNbErrors() ? errors_[size_t(i)].get() : nullptr;
  }
  void clearErrors() noexcept override { errors_.clear(); }
  bool setFlag(onnx::OnnxParserFlag flag) noexcept override {
    return flag == onnx::OnnxParserFlag::kNATIVE_INSTANCENORM ||
           refuse(
               "there are neither plugins nor further accelerators: of the parser's flags only kNATIVE_INSTANCENORM "
               "can be set");
  }
  bool clearFlag(onnx::OnnxParserFlag flag) noexcept override {
    return flag != onnx::OnnxParserFlag::kNATIVE_INSTANCENORM ||
           refuse("kNATIVE_INSTANCENORM cannot be cleared: there are no plugins that could normalise instead");
  }
  bool getFlag(onnx::OnnxParserFlag flag) const noexcept override {
    return flag == onnx::OnnxParserFlag::kNATIVE_INSTANCENORM;
  }
  int64_t getNbSubgraphs() const noexcept override { return int64_t(subgraphs_.size()); }
  bool isSubgraphSupported(int64_t i) noexcept override {
    const auto* g = subgraph(i);
    return g && g->supported;
  }
  int64_t const* getSubgraphNodes(int64_t i, int64_t& length) noexcept override {
    const auto* g = subgraph(i);
    length = g ? int64_t(g->nodes.size()) : 0;
    return g ? g->nodes.data() : nullptr;
  }

 private:
  bool refuse(char const* why) const noexcept {
    reporter_.report(ErrorCode::kUNSUPPORTED_STATE, why);
    return false;
  }
  const frontend::NodesBySupport* subgraph(int64_t i) const noexcept {
    return reporter_.guard(static_cast<const frontend::NodesBySupport*>(nullptr), [&] {
      if (i < 0 || size_t(i) >= subgraphs_.size())
        throw UserError("there is no subgraph {}: the last supportsModelV2 found {}", i, subgraphs_.size());
      return static_cast<const frontend::NodesBySupport*>(&subgraphs_[size_t(i)]);
    });
  }
  static void describe(const frontend::Model& model) {
    const ir::Region& top = model.graph->top();
    logInfo("model '{}': opset {}, {} nodes, {} inputs, {} outputs", model.graph->name, model.opset, model.nodes,
            top.inputs.size(), top.outputs.size());
    for (const ir::Value* v : top.inputs) logVerbose("input '{}': {}", v->name, v->type.text());
    for (const ir::Value* v : top.outputs) logVerbose("output '{}': {}", v->name, v->type.text());
    for (const auto& n : top.nodes) logVerbose("node '{}': {}", n->name, n->op);
  }
  static std::string directoryOf(char const* path) {
    if (!path) return "";
    const std::string p = path;
    const size_t slash = p.rfind('/');
    return slash == std::string::npos ? "." : p.substr(0, slash + 1);
  }
  static frontend::Model import(void const* data, std::size_t size, char const* path,
                                std::shared_ptr<const void> owner = nullptr) {
    if (!data) throw UserError("the model's address is null");
    frontend::ImportOptions o;
    o.directory = directoryOf(path);
    return frontend::importBytes({static_cast<const std::byte*>(data), size}, o, std::move(owner));
  }
  template <typename F>
  bool attempt(F f, const char* func = __builtin_FUNCTION(), int32_t line = __builtin_LINE()) noexcept {
    const Place at{func, line};
    return reporter_.guard(false, [&] {
      try {
        f();
        return true;
      } catch (const frontend::UnsupportedOperators& e) {
        for (const auto& n : e.nodes)
          errors_.push_back(
              std::make_unique<ParserError>(at, ErrorCode::kUNSUPPORTED_STATE, n.why, int32_t(n.index), n.name, n.op));
        throw;
      } catch (const UserError& e) {
        errors_.push_back(std::make_unique<ParserError>(at, ErrorCode::kINVALID_ARGUMENT, e.what()));
        throw;
      }
    });
  }
  Network& network_;
  Reporter reporter_;
  std::vector<std::unique_ptr<ParserError>> errors_;
  std::vector<frontend::NodesBySupport> subgraphs_;
};

}  // namespace
}  // namespace rutter::api

extern "C" void* rutterCreateOnnxParser(void* network, void* logger, int32_t apiVersion) noexcept {
  auto* l = static_cast<rutter::ILogger*>(logger);
  rutter::api::Reporter reporter(l);
  return reporter.guard(static_cast<void*>(nullptr), [&]() -> void* {
    if (!l || !network) throw rutter::UserError("createParser needs a network and a logger");
    if (apiVersion < 1 || apiVersion > RUTTER_API_VERSION)
      throw rutter::UserError(
          "the program was compiled against version {} of Rutter's headers, this library has {}: use matching ones",
          apiVersion, RUTTER_API_VERSION);
    auto* n = static_cast<rutter::api::Network*>(static_cast<rutter::INetworkDefinition*>(network));
    return static_cast<rutter::onnx::IParser*>(new rutter::api::Parser(*n, l));
  });
}
