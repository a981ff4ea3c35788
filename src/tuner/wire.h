#pragma once
// The public structs as JSON, for frames and the journal's header.
#include "tuner/record.h"

namespace rutter::tuner {

Json toJson(const TuneOptions& o);  ///< without the model's bytes
TuneOptions optionsFromJson(const Json& j);
Json toJson(const TuneResult& r);
TuneResult resultFromJson(const Json& j);
Json toJson(const Progress& p);
Progress progressFromJson(const Json& j);
Json toJson(const CandidateInfo& c);
CandidateInfo infoFromJson(const Json& j);

}  // namespace rutter::tuner
