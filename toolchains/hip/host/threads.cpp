// What std::mutex, std::condition_variable and std::thread are made of besides headers and
// library.cpp.
#include <condition_variable>
#include <mutex>
#include <stdlib.h>
#include <thread>
#include <unistd.h>

_LIBCPP_BEGIN_NAMESPACE_STD

static void require(int error, const char* what) {
  if (error != 0) __throw_system_error(error, what);
}

void mutex::lock() { require(__libcpp_mutex_lock(&__m_), "std::mutex::lock failed\n"); }
bool mutex::try_lock() noexcept { return __libcpp_mutex_trylock(&__m_); }
void mutex::unlock() noexcept { __libcpp_mutex_unlock(&__m_); }

recursive_mutex::recursive_mutex() {
  require(__libcpp_recursive_mutex_init(&__m_), "std::recursive_mutex failed\n");
}
recursive_mutex::~recursive_mutex() { __libcpp_recursive_mutex_destroy(&__m_); }
void recursive_mutex::lock() {
  require(__libcpp_recursive_mutex_lock(&__m_), "std::recursive_mutex::lock failed\n");
}
bool recursive_mutex::try_lock() noexcept { return __libcpp_recursive_mutex_trylock(&__m_); }
void recursive_mutex::unlock() noexcept { __libcpp_recursive_mutex_unlock(&__m_); }

condition_variable::~condition_variable() { __libcpp_condvar_destroy(&__cv_); }
void condition_variable::notify_one() noexcept { __libcpp_condvar_signal(&__cv_); }
void condition_variable::notify_all() noexcept { __libcpp_condvar_broadcast(&__cv_); }
void condition_variable::wait(unique_lock<mutex>& lock) noexcept {
  if (!lock.owns_lock()) abort();
  require(__libcpp_condvar_wait(&__cv_, lock.mutex()->native_handle()),
          "std::condition_variable::wait failed\n");
}

thread::~thread() {
  if (!__libcpp_thread_isnull(&__t_)) terminate();
}
void thread::join() {
  require(__libcpp_thread_join(&__t_), "std::thread::join failed\n");
  __t_ = _LIBCPP_NULL_THREAD;
}
void thread::detach() {
  require(__libcpp_thread_detach(&__t_), "std::thread::detach failed\n");
  __t_ = _LIBCPP_NULL_THREAD;
}
unsigned thread::hardware_concurrency() noexcept {
  const long found = sysconf(_SC_NPROCESSORS_ONLN);
  return found < 0 ? 0 : static_cast<unsigned>(found);
}

// Nothing is kept for a thread's end: std::notify_all_at_thread_exit and std::future need more.
__thread_struct::__thread_struct() : __p_(nullptr) {}
__thread_struct::~__thread_struct() {}

__thread_specific_ptr<__thread_struct>& __thread_local_data() {
  alignas(__thread_specific_ptr<__thread_struct>) static char
      memory[sizeof(__thread_specific_ptr<__thread_struct>)];
  // By one thread only, whatever threads come first; it is never destroyed, as threads outlive it.
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { new (memory) __thread_specific_ptr<__thread_struct>; });
  return *reinterpret_cast<__thread_specific_ptr<__thread_struct>*>(memory);
}

_LIBCPP_END_NAMESPACE_STD
