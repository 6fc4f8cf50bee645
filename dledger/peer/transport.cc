#include "dledger/peer/transport.h"

#include <glog/logging.h>

#include <algorithm>
#include <asio.hpp>
#include <iterator>
#include <map>
#include <utility>

#include "dledger/peer/dialer.h"
#include "dledger/peer/handshake.h"
#include "dledger/peer/session.h"

namespace triad::dledger {

using asio::ip::tcp;

struct PeerTransport::Parts {
  Parts(asio::io_context& context, const Clock& clock, TransportOptions options, PeerEvents* events)
      : io(context),
        handshake(clock, std::move(options), events),
        acceptor(context),
        accept_pause(context) {
    owner.on_welcome = [this](PeerSession* session) { Replace(session); };
    owner.on_end = [this](PeerSession* session) { Forget(session); };
  }

  Status Bind();
  void Accept();
  void OnAccepted(const asio::error_code& error, tcp::socket socket);
  void Replace(PeerSession* session);
  void Forget(PeerSession* session);

  asio::io_context& io;
  Handshake handshake;
  PeerSession::Owner owner;
  tcp::acceptor acceptor;
  asio::steady_timer accept_pause;
  std::map<PeerId, std::shared_ptr<PeerDialer>> dialers;
  std::vector<std::shared_ptr<PeerSession>> sessions;
  std::shared_ptr<bool> open = std::make_shared<bool>(true);
};

Status PeerTransport::Parts::Bind() {
  const PeerAddress* self = handshake.Find(handshake.options().self);
  if (self == nullptr) return Status::InvalidArgument("dLegerSelfId is not in dLegerPeers");
  asio::error_code error;
  const asio::ip::address address = asio::ip::make_address(handshake.options().bind_address, error);
  if (error) {
    return Status::InvalidArgument("bindAddress '" + handshake.options().bind_address +
                                   "': " + error.message());
  }
  const tcp::endpoint endpoint(address, self->port);
  const auto failed = [&](const char* what) {
    return Status::Unavailable("peer port " + std::to_string(self->port) +
                               " (dLegerPeers): " + what + ": " + error.message());
  };
  acceptor.open(endpoint.protocol(), error);
  if (error) return failed("open");
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (error) return failed("reuse address");
  acceptor.bind(endpoint, error);
  if (error) return failed("bind");
  acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) return failed("listen");
  return Status::Ok();
}

void PeerTransport::Parts::Accept() {
  acceptor.async_accept([this, still = open](const asio::error_code& error, tcp::socket socket) {
    const auto turn = handshake.events().BeginTurn();
    if (*still) OnAccepted(error, std::move(socket));
  });
}

void PeerTransport::Parts::OnAccepted(const asio::error_code& error, tcp::socket socket) {
  if (error) {
    // Out of descriptors, most likely: waiting is all that helps.
    LOG_EVERY_N(WARNING, 100) << "peer port: accept: " << error.message();
    accept_pause.expires_after(kBackoffMax);
    accept_pause.async_wait([this, still = open](const asio::error_code& cancelled) {
      const auto turn = handshake.events().BeginTurn();
      if (*still && !cancelled) Accept();
    });
    return;
  }
  if (sessions.size() < kSessionsMax) {
    sessions.push_back(std::make_shared<PeerSession>(std::move(socket), handshake, owner));
    sessions.back()->Start();
  }
  Accept();
}

void PeerTransport::Parts::Replace(PeerSession* session) {
  for (const std::shared_ptr<PeerSession>& other : sessions) {
    if (other.get() == session || other->peer() != session->peer()) continue;
    const std::shared_ptr<PeerSession> old = other;
    old->Close();
    Forget(old.get());
    handshake.events().OnDisconnected(session->peer());
    return;  // there is never more than one
  }
}

void PeerTransport::Parts::Forget(PeerSession* session) {
  std::erase_if(sessions, [session](const auto& other) { return other.get() == session; });
}

Result<std::unique_ptr<PeerTransport>> PeerTransport::Listen(asio::io_context& io,
                                                             const Clock& clock,
                                                             TransportOptions options,
                                                             PeerEvents* events) {
  auto parts = std::make_unique<Parts>(io, clock, std::move(options), events);
  TRIAD_RETURN_IF_ERROR(parts->Bind());
  return std::unique_ptr<PeerTransport>(new PeerTransport(std::move(parts)));
}

PeerTransport::PeerTransport(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

PeerTransport::~PeerTransport() {
  Close();
}

void PeerTransport::Start() {
  SetPeers(parts_->handshake.options().peers);
  parts_->Accept();
}

void PeerTransport::SetPeers(const std::vector<PeerAddress>& peers) {
  std::map<PeerId, PeerAddress> wanted;
  for (const PeerAddress& peer : peers) wanted[peer.id] = peer;
  wanted.erase(parts_->handshake.options().self);
  auto& dialers = parts_->dialers;
  for (auto it = dialers.begin(); it != dialers.end();) {
    PeerDialer& dialer = *it->second;
    const auto found = wanted.find(it->first);
    const bool is_kept = found != wanted.end() && found->second == dialer.peer();
    if (found == wanted.end() && !dialer.retired()) dialer.Retire();
    const bool is_over = is_kept ? dialer.retired() : found != wanted.end() || !dialer.connected();
    if (is_over) dialer.Close();
    it = is_over ? dialers.erase(it) : std::next(it);
  }
  for (const auto& [id, peer] : wanted) {
    if (dialers.contains(id)) continue;
    auto dialer = std::make_shared<PeerDialer>(parts_->io, parts_->handshake, peer);
    dialers[id] = dialer;
    dialer->Start();
  }
}

void PeerTransport::Send(const PeerId& to, Message message) {
  const auto found = parts_->dialers.find(to);
  if (found != parts_->dialers.end()) found->second->Send(std::move(message));
}

void PeerTransport::Send(const PeerId& to, SnapshotMessage message) {
  const auto found = parts_->dialers.find(to);
  if (found != parts_->dialers.end()) found->second->Send(std::move(message));
}

void PeerTransport::Flush() {
  for (const auto& [id, dialer] : parts_->dialers) dialer->Flush();
}

bool PeerTransport::connected(const PeerId& peer) const {
  const auto found = parts_->dialers.find(peer);
  return found != parts_->dialers.end() && found->second->connected();
}

void PeerTransport::Close() {
  if (!*parts_->open) return;
  *parts_->open = false;
  asio::error_code ignored;
  parts_->acceptor.close(ignored);
  parts_->accept_pause.cancel();
  for (const auto& [id, dialer] : parts_->dialers) dialer->Close();
  for (const std::shared_ptr<PeerSession>& session : parts_->sessions) session->Close();
  parts_->sessions.clear();
}

}  // namespace triad::dledger
