// Calls between ranks on the fake GPU.
#pragma once

#include "gpu/plugin.hpp"

namespace uzip::fake_gpu {

/// PluginApi::peers.
const gpu::PeerApi* peers();

/// This rank's GPU does not open the others' memory from now on; -1: all do.
void refuse_peers(int rank);
/// This rank's calls can't be started from now on; -1: all can.
void fail_peers_start(int rank);
/// What this rank's coded calls leave of 100 bytes from now on. 71 before.
void shrink_peers_to(int rank, unsigned percent);
/// Coded calls that were started, on all ranks.
int coded_peer_calls();
/// How many groups there are.
int peer_groups();
/// Calls so far that began beside what they must not wait beside.
int peer_risks();

}  // namespace uzip::fake_gpu
