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
/// How many there are.
int peer_groups();
/// Calls so far that began beside what they must not wait beside.
int peer_risks();

}  // namespace uzip::fake_gpu
