# SPDX-License-Identifier: Apache-2.0
# Removes the files of the last `cmake --install BUILD`, below DESTDIR if that is
# set, and then byoc's own folders that are empty: those with a part called byoc in
# their path. Run as `cmake --build BUILD --target uninstall`.
set(manifest ${BUILD}/install_manifest.txt)
if(NOT EXISTS ${manifest})
    message(FATAL_ERROR "${manifest} does not exist, expected the list of files "
        "that `cmake --install` writes; install from this build folder first")
endif()
file(STRINGS ${manifest} files ENCODING UTF-8)
set(count 0)
foreach(file ${files})
    set(file $ENV{DESTDIR}${file})
    if(EXISTS ${file} OR IS_SYMLINK ${file})
        file(REMOVE ${file})
        math(EXPR count "${count} + 1")
    endif()
    get_filename_component(folder ${file} DIRECTORY)
    list(APPEND folders ${folder})
endforeach()
list(REMOVE_DUPLICATES folders)
foreach(folder ${folders})
    while(folder MATCHES "/byoc(/|$)")
        file(REMOVE_RECURSE ${folder}/__pycache__) # of the Python modules
        file(GLOB left ${folder}/* ${folder}/.*)
        if(left)
            break()
        endif()
        file(REMOVE_RECURSE ${folder})
        get_filename_component(folder ${folder} DIRECTORY)
    endwhile()
endforeach()
message(STATUS "removed ${count} files")
