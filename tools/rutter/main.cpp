// rutter: the command line. Arguments in, one of the modes of run.h, an exit code out.
#include <fcntl.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/console.h"
#include "cli/exports.h"
#include "cli/options.h"
#include "knobs/registry.h"
#include "knobs/route.h"
#include "run.h"

namespace rutter::cli {
namespace {

// The error of a program's reader: kind (spec 1.3 for routes), text, and where.
std::string errorJson(const std::exception& e) {
  nlohmann::ordered_json j;
  if (auto* r = dynamic_cast<const knobs::RouteError*>(&e)) {
    j["error"]["kind"] = knobs::toString(r->kind);
    j["error"]["column"] = r->column;
    j["error"]["token"] = r->token;
  } else {
    j["error"]["kind"] = dynamic_cast<const DeviceError*>(&e)     ? "device"
                         : dynamic_cast<const InternalError*>(&e) ? "internal"
                                                                  : "user";
  }
  j["error"]["message"] = e.what();
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int helpBuildRoute(const CommandLine& line) {
  if (line.has(Flag::k_continue))
    throw UserError("--helpBuildRoute and --continue exclude each other: help runs nothing");
  Console({}).result(knobs::allBuildRoutesJson(knobs::Registry::builtin(), line.text(Flag::k_helpBuildRoute)));
  return 0;
}

int guarded(const std::vector<std::string>& argv) {
  const std::vector<std::string> args(argv.begin() + 1, argv.end());
  if (args.empty() || CommandLine::mentions(args, "--help") || CommandLine::mentions(args, "-h")) {
    Console(argv).result(helpText());
    return 0;
  }
  if (CommandLine::mentions(args, "--version")) {
    Console(argv).result("rutter " RUTTER_VERSION);
    return 0;
  }
  Console console(argv);
  console.setJson(CommandLine::mentions(args, "--json"));
  console.setVerbose(CommandLine::mentions(args, "--verbose"));
  bool banner = false;
  try {
    const bool help = std::any_of(args.begin(), args.end(), [](auto& a) { return a.starts_with("--helpBuildRoute"); });
    if (!help) {
      console.running();
      banner = true;
    }
    const auto line = CommandLine::parse(args);
    if (line.given(Flag::k_helpBuildRoute)) return helpBuildRoute(line);
    const auto options = makeOptions(line);
    for (const auto& w : options.warnings) console.warning(w);
    return run(options, argv, console) ? console.passed() : console.failed();
  } catch (const std::exception& e) {
    const bool bug = dynamic_cast<const std::bad_alloc*>(&e) == nullptr &&
                     dynamic_cast<const UserError*>(&e) == nullptr && dynamic_cast<const DeviceError*>(&e) == nullptr &&
                     dynamic_cast<const InternalError*>(&e) == nullptr;
    console.error(
        dynamic_cast<const std::bad_alloc*>(&e) ? "out of memory"
        : bug ? fmt::format("internal error (please report it with the model and the command line): {}", e.what())
              : e.what());
    if (console.json()) console.result(errorJson(e));
    return banner ? console.failed() : 1;
  }
}

}  // namespace
}  // namespace rutter::cli

int main(int argc, char** argv) {
  // A standard stream that is closed: else the next file that is opened takes its place, and messages land in it.
  for (int standard = 0; standard < 3; standard++)
    if (fcntl(standard, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return 1;
  std::signal(SIGXFSZ, SIG_IGN);  // beyond a limit of file sizes a write fails, and that is said
  const int code = rutter::cli::guarded({argv, argv + argc});
  const auto error = rutter::cli::outputError();
  if (code != 0 || error.empty()) return code;
  rutter::cli::Console({argv, argv + argc}).error(error);  // of help and listings, which have no closing line
  return 1;
}
