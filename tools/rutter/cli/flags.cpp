#include "cli/flags.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cli/values.h"

namespace rutter::cli {
namespace {

constexpr FlagInfo kTable[] = {
#define FLAG(name, kind, status, group, argument, help, note) \
  {Flag::k_##name, #name, Kind::kind, Status::status, Group::group, argument, help, note},
#include "cli/flags.def"
#undef FLAG
};

struct Bounds {
  double low, high;
};
// "0..5", "0..": what flags.def says of numbers.
Bounds bounds(std::string_view argument) {
  auto dots = argument.find("..");
  auto low = argument.substr(0, dots), high = argument.substr(dots + 2);
  return {parseReal("flags.def", low),
          high.empty() ? std::numeric_limits<double>::max() : parseReal("flags.def", high)};
}

std::vector<std::string> choices(std::string_view argument) {
  std::vector<std::string> out;
  for (size_t from = 0; from <= argument.size();) {
    size_t to = std::min(argument.find('|', from), argument.size());
    out.emplace_back(argument.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

// Reads the value once to see that it is well formed; Options read it again into their types.
void checkValue(const FlagInfo& f, const std::string& v) {
  switch (f.kind) {
    case Kind::Switch:
    case Kind::OptText:
    case Kind::Text:
    case Kind::Path:
      break;
    case Kind::Int: {
      auto [low, high] = bounds(f.argument);
      parseInt(f.name, v, static_cast<int64_t>(low), high > 2e9 ? INT32_MAX : static_cast<int64_t>(high));
      break;
    }
    case Kind::Real: {
      auto [low, high] = bounds(f.argument);
      parseReal(f.name, v, low, high);
      break;
    }
    case Kind::Millis:
      if (parseTime(f.name, v, 1e-3) < 0) throw UserError("--{}={}: must not be below 0", f.name, v);
      break;
    case Kind::Seconds:
      parseTime(f.name, v, 1);
      break;
    case Kind::Choice: {
      auto words = choices(f.argument);
      if (std::find(words.begin(), words.end(), v) == words.end())
        throw UserError("--{}={}: must be {}", f.name, v, joinOr(words));
      break;
    }
    case Kind::Shapes:
      parseShapes(f.name, v);
      break;
    case Kind::Files:
      parseFiles(f.name, v);
      break;
    case Kind::Sizes:
      parseSizes(f.name, v, 1 << 20);
      break;
    case Kind::List:
      parseList(f.name, v);
      break;
    case Kind::Percentiles:
      parsePercentiles(f.name, v);
      break;
  }
}

[[noreturn]] void unknown(const std::string& arg) {
  if (!arg.starts_with('-'))
    throw UserError("unexpected argument '{}'; options are written --name=value (a model: --onnx={})", arg, arg);
  std::vector<std::string> names;
  for (const auto& f : kTable) names.push_back(fmt::format("--{}", f.name));
  auto name = arg.substr(0, arg.find('='));
  if (!name.starts_with("--")) name = "-" + name;
  throw UserError("unknown option '{}'; nearest: {}; --help lists all", arg.substr(0, arg.find('=')),
                  joinOr(nearestNames(name, names)));
}

}  // namespace

std::span<const FlagInfo> flagTable() {
  return kTable;
}
const FlagInfo& info(Flag f) {
  return kTable[static_cast<size_t>(f)];
}

bool CommandLine::mentions(const std::vector<std::string>& args, std::string_view flag) {
  return std::find(args.begin(), args.end(), flag) != args.end();
}

CommandLine CommandLine::parse(const std::vector<std::string>& args) {
  CommandLine out;
  std::set<Flag> seen;
  for (size_t i = 0; i < args.size(); i++) {
    const auto& arg = args[i];
    auto eq = arg.find('=');
    auto name = std::string_view(arg).substr(0, eq);
    if (name == "-h") name = "--help";
    auto f = std::find_if(std::begin(kTable), std::end(kTable),
                          [&](const auto& t) { return name.starts_with("--") && name.substr(2) == t.name; });
    if (f == std::end(kTable)) unknown(arg);
    std::optional<std::string> value;
    if (eq != arg.npos) value = arg.substr(eq + 1);

    const bool off = f->kind == Kind::Switch && value == "false";
    if (!off && (f->status == Status::Later || f->status == Status::Error))
      throw UserError("--{} {}: {}", f->name, f->status == Status::Later ? "is not supported yet" : "is not possible",
                      f->note);
    if (f->kind == Kind::Switch) {
      if (value && *value != "true" && *value != "false")
        throw UserError("--{}={}: takes no value but true or false", f->name, *value);
    } else if (f->kind != Kind::OptText) {
      if (!value || (value->empty() && f->kind != Kind::Text))
        throw UserError("--{} needs a value: --{}={}", f->name, f->name, f->argument);
      checkValue(*f, *value);
    } else if (value && value->empty()) {
      throw UserError("--{}= has no value; write --{} or --{}={}", f->name, f->name, f->name, f->argument);
    }
    if (f->status != Status::Repeat && !seen.insert(f->flag).second)
      throw UserError("--{} is given twice; give it once", f->name);
    if (f->status == Status::Warn && !off)
      out.warnings_.push_back(fmt::format("--{} is ignored: {}", f->name, f->note));
    out.given_.push_back({f->flag, std::move(value), i});
  }
  return out;
}

bool CommandLine::given(Flag f) const {
  return std::any_of(given_.begin(), given_.end(), [&](const auto& g) { return g.flag == f; });
}
bool CommandLine::has(Flag f) const {
  return std::any_of(given_.begin(), given_.end(), [&](const auto& g) {
    return g.flag == f && !(info(f).kind == Kind::Switch && g.value == "false");
  });
}
std::optional<std::string> CommandLine::value(Flag f) const {
  for (const auto& g : given_)
    if (g.flag == f) return g.value;
  return std::nullopt;
}
std::string CommandLine::text(Flag f) const {
  return value(f).value_or("");
}

std::string helpText() {
  static constexpr std::pair<Group, std::string_view> kGroups[] = {
      {Group::Model, "Model Options"},         {Group::Build, "Build Options"},
      {Group::Tuning, "Tuning Options"},       {Group::Inference, "Inference Options"},
      {Group::Reporting, "Reporting Options"}, {Group::System, "System Options"}};
  std::string out =
      "rutter: compiles an ONNX model into an engine, measures it, and tunes its compilation.\n"
      "  rutter --onnx=model.onnx --shapes=x:1x3x320x320 --tune=60s --saveEngine=model.engine\n"
      "Options are written --name=value; shapes name:1x3x224x224,other:scalar; sizes with B, K, M or G; times with ms, "
      "s, m or h.\n";
  for (const auto& [group, title] : kGroups) {
    out += fmt::format("\n=== {} ===\n", title);
    for (const auto& f : kTable) {
      if (f.group != group || (f.status != Status::Yes && f.status != Status::Repeat)) continue;
      std::string left = fmt::format("  --{}", f.name);
      if (f.kind == Kind::OptText)
        left += fmt::format("[={}]", f.argument);
      else if (f.kind == Kind::Int || f.kind == Kind::Real)
        left += "=N";
      else if (f.kind != Kind::Switch)
        left += fmt::format("={}", f.argument);
      out +=
          left.size() < 32 ? fmt::format("{:<32}{}\n", left, f.help) : fmt::format("{}\n{:32}{}\n", left, "", f.help);
    }
  }
  std::string ignored;
  for (const auto& f : kTable)
    if (f.status == Status::Warn || f.status == Status::Na) ignored += fmt::format(" --{}", f.name);
  return out + "\nAccepted for compatibility, without effect on a CPU:" + ignored + "\n";
}

}  // namespace rutter::cli
