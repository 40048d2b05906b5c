// Simulated calls as traces that Chrome and Perfetto show.
#include "algos/print.hpp"
#include "algos/simulate.hpp"

#include <cstdio>
#include <map>

namespace uzip {
namespace {

const char* lane_name(TraceEvent::Lane lane) {
  switch (lane) {
    case TraceEvent::Lane::kCore:
      return "core";
    case TraceEvent::Lane::kOut:
      return "port out";
    case TraceEvent::Lane::kIn:
      return "port in";
  }
  return "unknown";
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string metadata(const char* what, int process, int thread, const std::string& name) {
  return std::string("{\"ph\":\"M\",\"name\":\"") + what + "\",\"pid\":" + std::to_string(process) +
         ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"name\":" + quoted(name) + "}},\n";
}

std::string print_event(const TraceEvent& event, const Step& step) {
  char times[128];
  std::snprintf(times, sizeof times, ",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d",
                1e6 * event.begin, 1e6 * (event.end - event.begin), event.rank,
                static_cast<int>(event.lane));
  return "{\"ph\":\"X\",\"name\":" + quoted(print_step(step)) + times +
         ",\"args\":{\"round\":" + std::to_string(event.round) +
         ",\"step\":" + std::to_string(event.step) + "}}";
}

}  // namespace

Result<std::string> print_trace(const CallModel& call, const MachineModel& machine) {
  std::vector<TraceEvent> events;
  UZIP_ASSIGN_OR_RETURN(const Prediction prediction, simulate(call, machine, &events));
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  for (int rank : prediction.simulated) {
    text += metadata("process_name", rank, 0, "rank " + std::to_string(rank));
    for (TraceEvent::Lane lane :
         {TraceEvent::Lane::kCore, TraceEvent::Lane::kOut, TraceEvent::Lane::kIn}) {
      text += metadata("thread_name", rank, static_cast<int>(lane), lane_name(lane));
    }
  }
  std::map<std::pair<uint32_t, int>, Schedule> schedules;  // by kind of round and rank
  for (const TraceEvent& event : events) {
    const auto [schedule, made] = schedules.try_emplace({event.kind, event.rank});
    if (made) {
      const CallModel::Kind& kind = call.kinds[event.kind];
      schedule->second = build_schedule(*call.algorithm, kind.shape, kind.form, event.rank);
    }
    text += print_event(event, schedule->second.steps[event.step]) + ",\n";
  }
  char total[96];
  std::snprintf(total, sizeof total, "],\"otherData\":{\"seconds\":%.9g,\"ranks\":%d}}\n",
                prediction.seconds, prediction.ranks);
  text.erase(text.size() - 2);  // the last comma
  return text + "\n" + total;
}

}  // namespace uzip
