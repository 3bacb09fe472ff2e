// Named moments at which a test may act on a process: between two writes, say. Nothing happens in
// a program that was built without tests.

#pragma once

namespace tessera::engine {

// With TESSERA_TEST_POINTS=FOLDER in the environment: where FOLDER has an executable file of this
// name, whoever comes here runs it with the own process id as the only argument, and goes on when
// it has ended.
void test_point(const char* name);

}  // namespace tessera::engine
