#ifndef PARLEY_PENDING_TCP_HPP
#define PARLEY_PENDING_TCP_HPP

// TCP connections that are not part of a transport yet. mediasoup keeps such a
// connection for as long as its peer likes, so that anybody could fill the
// worker's descriptors. Here it has 10 s to send a STUN request that a transport
// accepts, and of more than 1,024 the oldest is closed.

#include "DepLibUV.hpp"
#include "handles/TcpConnectionHandle.hpp"
#include <uv.h>
#include <algorithm>
#include <vector>

namespace PendingTcp
{
	constexpr uint64_t MaxAgeMs{ 10000 };
	constexpr size_t MaxConnections{ 1024 };
	constexpr uint64_t IntervalMs{ 1000 };

	struct Pending
	{
		TcpConnectionHandle* connection;
		uint64_t since;
	};

	// In the order in which they were accepted.
	inline thread_local std::vector<Pending> list;
	// Exists while the list is not empty, so that it keeps no loop from ending.
	inline thread_local uv_timer_t* timer{ nullptr };

	// The connection became part of a transport, or is gone.
	inline void Remove(const TcpConnectionHandle* connection)
	{
		auto it = std::find_if(
		  list.begin(), list.end(), [connection](const Pending& one) { return one.connection == connection; });

		if (it == list.end())
		{
			return;
		}

		list.erase(it);

		if (list.empty() && timer)
		{
			uv_close(
			  reinterpret_cast<uv_handle_t*>(timer),
			  [](uv_handle_t* handle) { delete reinterpret_cast<uv_timer_t*>(handle); });
			timer = nullptr;
		}
	}

	inline void CloseOldest()
	{
		auto* connection = list.front().connection;

		Remove(connection);
		connection->TriggerClose();
	}

	inline void OnTimer(uv_timer_t* /*handle*/)
	{
		const uint64_t now = uv_now(DepLibUV::GetLoop());

		while (!list.empty() && now - list.front().since >= MaxAgeMs)
		{
			CloseOldest();
		}
	}

	inline void Add(TcpConnectionHandle* connection)
	{
		if (list.size() >= MaxConnections)
		{
			CloseOldest();
		}

		list.push_back({ connection, uv_now(DepLibUV::GetLoop()) });

		if (!timer)
		{
			timer = new uv_timer_t;
			uv_timer_init(DepLibUV::GetLoop(), timer);
			uv_timer_start(timer, OnTimer, IntervalMs, IntervalMs);
		}
	}
} // namespace PendingTcp

#endif
